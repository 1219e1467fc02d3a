// SPDX-License-Identifier: Apache-2.0
//
// The supervisor of a step: what it does with srun, scancel and squeue, or with mpirun.

#include <sysexits.h>
#include <unistd.h>

#include <csignal>

#include "launcher/supervise/supervisor.h"
#include "tests/launcher/supervise/supervisor_fixture.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

// A step of Slurm, as files of the test's directory: scancel writes the signal into "signals",
// SIGKILL after a while, and squeue shows "step".
class SupervisorOfAStepTest : public SupervisorTest {
 protected:
  SupervisorOfAStepTest() {
    options_.event_key = "key";
    options_.grace = std::chrono::milliseconds(100);
    options_.grace_of_launcher = std::chrono::milliseconds(300);
    options_.step_tools.environment = {{"PATH", "/usr/bin:/bin"}};
    options_.step_tools.signal = [this](const std::string& step, int signal) {
      return Shell(scancel_ + "; echo " + step + " " + std::to_string(signal) + " >> signals");
    };
    options_.step_tools.list = [this](const std::string&) {
      return Shell("cat step 2> /dev/null; exit 0");
    };
  }

  StepTools::Command Shell(const std::string& script) const {
    return {"/bin/sh", "-c", "cd '" + directory_ + "'; " + script};
  }

  JobResult RunLauncher(const std::string& launcher, const std::string& script) const {
    ChildCommand command;
    command.launcher = &TraitsOf(launcher.c_str());
    command.argv = Shell(script);
    command.environment = {"PATH=/usr/bin:/bin"};
    SignalRelay signals;
    return Supervise({command}, options_, signals);
  }

  JobResult RunSrun(const std::string& script) const { return RunLauncher("srun", script); }

  static constexpr char kHangs[] =
      "echo 'ddlrun-rank[key]: step 12.3' >&2; echo 'srun: error: n2: task 1: Killed' >&2; "
      "exec sleep 600";
  static constexpr char kRankRuns[] =
      "echo 'ddlrun-rank[key]: step 12.3' >&2; echo 'ddlrun-rank[key]: rank 0 has started' >&2; ";
  // A shell has said its words by then, also on a busy machine.
  static constexpr std::chrono::milliseconds kStartLimit{1000};
  std::string scancel_ = "true";
  SupervisorOptions options_;
};

TEST_F(SupervisorOfAStepTest, KillsSrunAndItsStepIfItDoesNotEndAfterARankHasFailed) {
  scancel_ = "sleep 0.5";  // longer than srun's grace, so that it is seen to be waited for
  const JobResult result = RunSrun(kHangs);
  EXPECT_EQ(result.exit_code, 137);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->rank, 1);
  EXPECT_EQ(Content("signals"), "12.3 23\n12.3 9\n");
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST_F(SupervisorOfAStepTest, LeavesSrunTheTimeToEndByItselfWhenItsStepWasKilled) {
  options_.grace = std::chrono::milliseconds(1000);
  scancel_ = ": > killed";
  const JobResult result = RunSrun(
      "echo 'ddlrun-rank[key]: step 12.3' >&2; echo 'srun: error: n2: task 1: Killed' >&2; "
      "while [ ! -e killed ]; do sleep 0.02; done; echo > saw; exit 137");
  EXPECT_EQ(result.exit_code, 137);
  EXPECT_EQ(Content("saw"), "\n");
}

TEST_F(SupervisorOfAStepTest, WaitsUntilAKilledStepIsGone) {
  scancel_ = "echo 12.3 > step; (sleep 0.7; rm -f step; echo > gone) > /dev/null 2>&1 & true";
  const JobResult result = RunSrun(kHangs);
  EXPECT_EQ(Content("signals"), "12.3 23\n12.3 9\n");
  EXPECT_EQ(Content("gone"), "\n");
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST_F(SupervisorOfAStepTest, SaysThatAKilledStepIsStillThere) {
  scancel_ = "echo 12.3 > step";
  options_.timeout_with_step = std::chrono::milliseconds(500);
  EXPECT_THAT(RunSrun(kHangs).notes,
              ElementsAre("step 12.3 was killed and is still there: Slurm could not end all of its "
                          "ranks yet"));
}

TEST_F(SupervisorOfAStepTest, LeavesSrunItsTimeAfterARankHasFailed) {
  options_.grace_of_launcher = kLong;
  EXPECT_EQ(RunSrun("echo 'srun: error: n2: task 1: Exited with exit code 3' >&2; sleep 1; exit 3")
                .exit_code,
            3);
  EXPECT_EQ(Content("signals"), "");
}

TEST_F(SupervisorOfAStepTest, TellsTheRanksOfAStepThatAPeerHasFailed) {
  options_.grace_of_launcher = kLong;
  scancel_ = "echo > told";
  const JobResult result =
      RunSrun(std::string(kRankRuns) +
              "echo 'ddlrun-rank[key]: rank 0 on n1 (pid 7) ended with exit code 3' >&2; "
              "while [ ! -e told ]; do sleep 0.02; done; exit 3");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(Content("signals"), "12.3 23\n");
}

TEST_F(SupervisorOfAStepTest, TellsTheRanksOfMpirunAndThatAllAreGone) {
  options_.hosts = {"n1", "n2"};
  options_.grace_of_launcher = kLong;
  const JobResult result = RunLauncher(
      "mpirun",
      "trap 'echo >> told; echo \"ddlrun-rank[key]: rank 1 is gone, 143\" >&2' URG; " +
          std::string(kRankRuns) +
          "echo 'ddlrun-rank[key]: rank 0 on n1 (pid 7) ended with exit code 3' >&2; "
          "echo 'ddlrun-rank[key]: rank 0 is gone, 3' >&2; sleep 0.3; "
          // Told now, rank 1 would not hear of it.
          "[ ! -e told ] || echo early >> told; echo 'ddlrun-rank[key]: rank 1 has started' >&2; "
          "while [ ! -e told ] || [ $(wc -l < told) -lt 2 ]; do sleep 0.02; done; exit 1");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(Content("told"), "\n\n");
}

TEST_F(SupervisorOfAStepTest, TellsNobodyOfAFailureAfterAnOrderToStop) {
  options_.grace_of_launcher = kLong;
  RunSrun("trap 'exit 75' USR1; " + std::string(kRankRuns) + "echo > ready; sleep 0.5; " +
          SignalWhenReady("TERM") +
          "sleep 0.5; echo 'ddlrun-rank[key]: rank 0 on n1 (pid 7) ended with exit code 3' >&2; "
          "sleep 0.5; exit 3");
  EXPECT_EQ(Content("signals").find(" 23"), std::string::npos);
}

TEST_F(SupervisorOfAStepTest, DoesNotWaitForALauncherWhoseRanksAreAllGone) {
  options_.hosts = {"n1", "n2"};
  options_.launcher_timeout = std::chrono::milliseconds(300);
  options_.grace = std::chrono::seconds(3);  // for squeue to answer; srun is killed after it
  const std::string fails =
      "on n1 (pid 7) ended with exit code 3' >&2; "
      "echo 'ddlrun-rank[key]: rank 0 is gone, 3";
  for (const auto& [ends, code] : {std::pair(std::string("has ended"), 0), std::pair(fails, 3)}) {
    for (const char* const launcher : {"srun", "mpirun"}) {
      std::filesystem::remove(directory_ + "/signals");
      const JobResult result =
          RunLauncher(launcher, std::string(kRankRuns) +
                                    "echo 'ddlrun-rank[key]: rank 1 has ended' >&2; "
                                    "echo 'ddlrun-rank[key]: rank 0 " +
                                    ends + "' >&2; exec sleep 600");
      EXPECT_EQ(result.exit_code, code);
      EXPECT_EQ(result.launcher_end, "");
      ASSERT_THAT(result.notes, SizeIs(1));
      EXPECT_NE(result.notes[0].find("all ranks have ended, but "), std::string::npos);
    }
  }
  EXPECT_THAT(RunSrun(std::string(kRankRuns) + "echo 'ddlrun-rank[key]: rank 1 has ended' >&2; "
                                               "sleep 1; exit 5")
                  .notes,
              IsEmpty());
}

TEST_F(SupervisorOfAStepTest, EndsAnMpirunThatDoesNotEndAfterARankHasFailed) {
  const JobResult result =
      RunLauncher("mpirun",
                  "trap 'echo > told; exit 1' TERM; "
                  "echo 'ddlrun-rank[key]: rank 1 on n2 (pid 7) ended with exit code 3' >&2; "
                  "while :; do sleep 0.05; done");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(Content("told"), "\n");  // it ends its ranks then, if it can
}

TEST_F(SupervisorOfAStepTest, SendsSigusr1WhereSlurmDoesNotPassAnOrderToStopOn) {
  scancel_ = "exit 1";
  const JobResult result =
      RunSrun("trap 'exit 75' USR1; " + std::string(kRankRuns) + "echo > ready; sleep 0.5; " +
              SignalWhenReady("TERM") + "while :; do sleep 0.05; done");
  EXPECT_EQ(result.exit_code, EX_TEMPFAIL);
  EXPECT_EQ(result.stop_signal, SIGTERM);
  EXPECT_THAT(result.notes, ElementsAre("slurmctld did not pass the order to stop on: ranks got "
                                        "SIGUSR1"));
}

TEST_F(SupervisorOfAStepTest, LeavesAStepThatSlurmHasCancelledToSlurm) {
  scancel_ = "exit 1";
  const JobResult result = RunSrun(
      "trap 'exit 75' USR1; " + std::string(kRankRuns) +
      "echo 'slurmstepd-n1: error: "
      "*** STEP 12.3 ON n1 CANCELLED AT 2026-11-23T16:24:49 ***' >&2; echo > ready; sleep 0.5; " +
      SignalWhenReady("TERM") + "for i in $(seq 20); do sleep 0.05; done");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.notes, IsEmpty());
}

// As Slurm and systemd send them.
TEST_F(SupervisorOfAStepTest, SendsSigusr1AlsoWhereSigcontFollowsTheOrder) {
  scancel_ = "exit 1";
  const JobResult result =
      RunSrun("trap 'exit 75' USR1; " + std::string(kRankRuns) + "echo > ready; sleep 0.5; " +
              SignalWhenReady("TERM") + "kill -CONT " + std::to_string(getpid()) +
              "; for i in $(seq 400); do sleep 0.05; done");
  EXPECT_EQ(result.exit_code, EX_TEMPFAIL);
  EXPECT_THAT(result.notes, SizeIs(1));
}

TEST_F(SupervisorOfAStepTest, EndsAStepWhoseSrunWasKilled) {
  scancel_ = "echo killed >> signals; rm step; exit";
  const JobResult result =
      RunSrun(std::string(kRankRuns) +
              "echo 'ddlrun-rank[key]: step 12.3' >&2; echo 12.3 > step; kill -KILL $$");
  EXPECT_EQ(result.exit_code, 137);
  EXPECT_FALSE(result.is_before_start);
  EXPECT_EQ(result.launcher_end, "srun was ended by signal 9 (Killed)");
  EXPECT_EQ(Content("signals"), "killed\n");
  EXPECT_FALSE(result.step_is_left);
}

// Ends the job once rank 0 has started, in one of both ways.
class EndsOnceStarted : public JobWatcher {
 public:
  explicit EndsOnceStarted(bool kills) : kills_(kills) {}
  void Poll(WatchedJob& job) override {
    if (!job.started().contains(0)) return;
    const OwnEnd end{.exit_code = 75, .text = "it is enough"};
    kills_ ? job.Kill(end) : job.End(end);
  }

 private:
  const bool kills_;
};

TEST_F(SupervisorOfAStepTest, AWatcherEndsTheJobOfWhichNoRankHasFailed) {
  const std::string starts =
      "echo 'ddlrun-rank[key]: step 12.3' >&2; echo 'ddlrun-rank[key]: rank 0 has started' >&2; ";
  const std::string fails =
      "trap \"echo 'ddlrun-rank[key]: rank 1 on n2 (pid 7) ended with signal 9 (Killed)' >&2; exit "
      "137\" TERM; while :; do sleep 0.05; done";
  for (const bool kills : {false, true}) {
    options_.watchers.clear();
    options_.watchers.push_back(std::make_unique<EndsOnceStarted>(kills));
    options_.hosts = {"n1", "n2"};
    const JobResult result = RunLauncher("mpirun", starts + fails);
    EXPECT_EQ(result.exit_code, 75);
    EXPECT_FALSE(result.failure);
    EXPECT_EQ(result.own_end.value().text, "it is enough");
  }
  const JobResult killed = RunSrun(starts + "exec sleep 600");
  EXPECT_EQ(killed.exit_code, 75);
  EXPECT_EQ(Content("signals"), "12.3 9\n");
}

TEST_F(SupervisorOfAStepTest, KnowsThatAllHadStartedAlsoWhenOneHadEndedBefore) {
  options_.hosts = {"n1", "n2"};
  const JobResult result = RunSrun(
      "echo 'ddlrun-rank[key]: rank 1 has started' >&2; "
      "echo 'ddlrun-rank[key]: rank 1 on n2 (pid 7) ended with exit code 69' >&2; "
      "echo 'ddlrun-rank[key]: rank 0 has started' >&2; exit 69");
  EXPECT_TRUE(result.has_started);
}

TEST_F(SupervisorOfAStepTest, NamesTheNodesOfWhichNothingWasHeard) {
  options_.hosts = {"n1", "n2.site", "n3", "n4", "n4"};
  const std::string some =
      "echo 'ddlrun-rank[key]: rank 0 on n1 (pid 7) ended with exit code 69' >&2; "
      "echo 'srun: error: n[2-3]: tasks 1-2: Terminated' >&2; exit ";
  EXPECT_THAT(RunSrun(some + "69").silent_nodes, ElementsAre("n4"));
  EXPECT_THAT(RunSrun("echo 'ddlrun-rank[key]: rank 0 has ended' >&2").silent_nodes, IsEmpty());
  // Where nothing was heard of any node, something else is wrong.
  EXPECT_THAT(RunSrun("exit 69").silent_nodes, IsEmpty());
}

}  // namespace
}  // namespace launcher
