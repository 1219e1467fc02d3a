// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sysexits.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "launcher/error.h"

namespace launcher {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() : directory_(testing::TempDir() + "supervisor." + std::to_string(getpid())) {
    fs::create_directory(directory_);
  }
  ~SupervisorTest() override { fs::remove_all(directory_); }

  // One rank per script of sh, in `directory_`.
  JobResult Run(const std::vector<std::string>& scripts, std::chrono::milliseconds grace) {
    std::vector<ChildCommand> commands;
    SupervisorOptions options;
    options.grace = grace;
    for (const std::string& script : scripts) {
      ChildCommand command;
      command.rank = static_cast<int>(commands.size());
      command.argv = {"/bin/sh", "-c", "cd '" + directory_ + "'; " + script};
      command.environment = {"PATH=/usr/bin:/bin"};
      commands.push_back(command);
      options.hosts.push_back("n" + std::to_string(command.rank + 1));
    }
    SignalRelay signals;
    return Supervise(commands, options, signals);
  }

  std::string Content(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Sends ddlrun (this process) a signal once the file `ready` is there, as a child would not.
  std::string SignalWhenReady(const std::string& name) const {
    return "while [ ! -e ready ]; do sleep 0.02; done; kill -" + name + " " +
           std::to_string(getpid()) + "; ";
  }

  static constexpr std::chrono::seconds kLong{60};
  std::string directory_;
};

TEST_F(SupervisorTest, SucceedsWhenAllRanksDo) {
  const JobResult result = Run({"true", "exit 0"}, kLong);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_FALSE(result.failure);
}

TEST_F(SupervisorTest, PassesOnTheCodeOfTheFirstFailingRankAndEndsTheOthers) {
  const JobResult result = Run({"exec sleep 600", "echo why >&2; exit 3"}, kLong);
  EXPECT_EQ(result.exit_code, 3);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->rank, 1);
  EXPECT_EQ(result.failure->host, "n2");
  EXPECT_EQ(result.failure->signal, 0);
  EXPECT_THAT(result.failure->last_lines, Contains("why"));
}

TEST_F(SupervisorTest, ASignalIs128AndItsNumber) {
  EXPECT_EQ(Run({"kill -SEGV $$"}, kLong).exit_code, 139);
  const JobResult result = Run({"kill -KILL $$"}, kLong);
  EXPECT_EQ(result.exit_code, 137);
  EXPECT_EQ(result.failure->signal, 9);
}

TEST_F(SupervisorTest, KillsARankThatIgnoresSigtermAfterTheGrace) {
  const JobResult result = Run({"trap '' TERM; echo > ready; while :; do sleep 0.05; done",
                                "while [ ! -e ready ]; do sleep 0.02; done; exit 4"},
                               std::chrono::milliseconds(200));
  EXPECT_EQ(result.exit_code, 4);
}

TEST_F(SupervisorTest, LeavesTheOthersTimeAfterAnEarlyStopWithACheckpoint) {
  const JobResult result =
      Run({"exit 75", "sleep 0.3; echo done > last; exit 75"}, std::chrono::milliseconds(1));
  EXPECT_EQ(result.exit_code, EX_TEMPFAIL);
  EXPECT_EQ(Content("last"), "done\n");
}

TEST_F(SupervisorTest, AFailureCountsMoreThanAnEarlyStop) {
  EXPECT_EQ(Run({"exit 75", "sleep 0.2; exit 5"}, kLong).exit_code, 5);
}

// Gone, or a zombie that init has not collected yet.
bool HasEnded(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return !(stat >> number >> name >> state) || state == "Z";
}

TEST_F(SupervisorTest, EndsWhatARankLeftBehind) {
  EXPECT_EQ(Run({"sleep 600 & echo $! > pid; exit 0"}, kLong).exit_code, 0);
  const pid_t left = std::stoi(Content("pid"));
  for (int i = 0; i < 200 && !HasEnded(left); ++i) usleep(10'000);  // SIGKILL takes its moment
  EXPECT_TRUE(HasEnded(left));
}

TEST_F(SupervisorTest, RelaysUserSignalsToEveryRank) {
  const JobResult result =
      Run({"trap 'echo got > first; exit 0' USR1; echo > ready; while :; do sleep 0.05; done",
           "trap 'echo got > second; exit 0' USR1; " + SignalWhenReady("USR1") +
               "while :; do sleep 0.05; done"},
          kLong);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(Content("first"), "got\n");
  EXPECT_EQ(Content("second"), "got\n");
}

TEST_F(SupervisorTest, TheSecondInterruptKills) {
  const JobResult result = Run({"trap 'echo > once' INT; echo > ready; " + SignalWhenReady("INT") +
                                "while [ ! -e once ]; do sleep 0.02; done; kill -INT " +
                                std::to_string(getpid()) + "; while :; do sleep 0.05; done"},
                               kLong);
  EXPECT_EQ(result.exit_code, 137);
}

TEST_F(SupervisorTest, KnowsThatItWasToldToStopAndNotByWhichSignalRanksAreAskedForACheckpoint) {
  const std::string waits = "while :; do sleep 0.05; done";
  const std::string stops = "trap 'exit 75' TERM USR1; echo > ready; ";
  EXPECT_TRUE(Run({stops + SignalWhenReady("TERM") + waits}, kLong).told_to_stop);
  const JobResult result = Run({stops + SignalWhenReady("USR1") + waits}, kLong);
  EXPECT_EQ(result.exit_code, EX_TEMPFAIL);
  EXPECT_FALSE(result.told_to_stop);
}

TEST_F(SupervisorTest, LearnsFromSrunWhichNodeIsLost) {
  ChildCommand command;
  command.kind = ChildCommand::Kind::kSrun;
  command.argv = {"/bin/sh", "-c", "echo 'srun: error: Node failure on n2' >&2; exit 137"};
  SignalRelay signals;
  const JobResult result = Supervise({command}, SupervisorOptions{}, signals);
  EXPECT_EQ(result.exit_code, 137);
  EXPECT_THAT(result.lost_nodes, ElementsAre("n2"));
}

TEST_F(SupervisorTest, SaysThatSrunOrMpirunWasKilledByOthers) {
  SignalRelay signals;
  ChildCommand command;
  command.argv = {"/bin/sh", "-c", "kill -KILL $$"};
  command.kind = ChildCommand::Kind::kSrun;
  JobResult result = Supervise({command}, SupervisorOptions{}, signals);
  EXPECT_EQ(result.exit_code, 137);
  EXPECT_EQ(result.launcher_end, "srun was ended by signal 9 (Killed)");
  command.kind = ChildCommand::Kind::kMpirun;
  EXPECT_EQ(Supervise({command}, SupervisorOptions{}, signals).launcher_end,
            "mpirun was ended by signal 9 (Killed)");
  // An exit code is its own verdict, and a rank's end comes before all others.
  command.argv = {"/bin/sh", "-c", "exit 9"};
  EXPECT_EQ(Supervise({command}, SupervisorOptions{}, signals).launcher_end, "");
  command.kind = ChildCommand::Kind::kSrun;
  command.argv = {"/bin/sh", "-c",
                  "echo 'srun: error: n2: task 1: Killed' >&2; sleep 0.2; kill -KILL $$"};
  result = Supervise({command}, SupervisorOptions{}, signals);
  EXPECT_EQ(result.launcher_end, "");
  EXPECT_EQ(result.failure->rank, 1);
}

// What srun passes on, and the rank that is named.
int RankNamed(const std::string& reports) {
  ChildCommand command;
  command.kind = ChildCommand::Kind::kSrun;
  command.argv = {"/bin/sh", "-c", "printf '" + reports + "' >&2; exit 14"};
  SupervisorOptions options;
  options.report_key = "key";
  SignalRelay signals;
  const JobResult result = Supervise({command}, options, signals);
  return result.failure ? result.failure->rank : -1;
}

TEST_F(SupervisorTest, NamesTheRankThatEndedFirstByTheClocksOfItsNodes) {
  const auto ended = [](int rank, const std::string& how, const std::string& when) {
    return "ddlrun-rank[key]: rank " + std::to_string(rank) + " on n" + std::to_string(rank) +
           " (pid 7) ended with " + how + when + "\\n";
  };
  const std::string early = " at 2026-11-22T12:13:22.801234Z";
  const std::string late = " at 2026-11-22T12:13:22.802000Z";
  const std::string killed = "signal 9 (Killed)";
  const std::string lost_its_peer = "exit code 14";
  EXPECT_EQ(RankNamed(ended(1, lost_its_peer, late) + ended(0, killed, early)), 0);
  EXPECT_EQ(RankNamed(ended(0, killed, early) + ended(1, lost_its_peer, late)), 0);
  EXPECT_EQ(RankNamed(ended(1, lost_its_peer, early) + ended(0, killed, early)), 1);
  EXPECT_EQ(RankNamed(ended(1, lost_its_peer, late) + ended(0, killed, "")), 1);
  // A clock that is behind is no evidence.
  EXPECT_EQ(RankNamed(ended(1, lost_its_peer, late) +
                      ended(0, killed, " at 2026-11-22T12:13:21.801234Z")),
            1);
  // A failure counts more than an early stop, whichever came first.
  EXPECT_EQ(RankNamed(ended(1, lost_its_peer, late) + ended(0, "exit code 75", early)), 1);
  EXPECT_EQ(RankNamed(ended(0, "exit code 75", early) + ended(1, lost_its_peer, late)), 1);
}

// A step of Slurm, as files of the test's directory: scancel writes the signal into "signals",
// SIGKILL after a while, and squeue shows "step".
class SupervisorOfAStepTest : public SupervisorTest {
 protected:
  SupervisorOfAStepTest() {
    options_.report_key = "key";
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

  JobResult RunLauncher(ChildCommand::Kind kind, const std::string& script) const {
    ChildCommand command;
    command.kind = kind;
    command.argv = Shell(script);
    command.environment = {"PATH=/usr/bin:/bin"};
    SignalRelay signals;
    return Supervise({command}, options_, signals);
  }

  JobResult RunSrun(const std::string& script) const {
    return RunLauncher(ChildCommand::Kind::kSrun, script);
  }

  static constexpr char kHangs[] =
      "echo 'ddlrun-rank[key]: step 12.3' >&2; echo 'srun: error: n2: task 1: Killed' >&2; "
      "exec sleep 600";
  std::string scancel_ = "true";
  SupervisorOptions options_;
};

TEST_F(SupervisorOfAStepTest, KillsSrunAndItsStepIfItDoesNotEndAfterARankHasFailed) {
  scancel_ = "sleep 0.5";  // longer than srun's grace, so that it is seen to be waited for
  const JobResult result = RunSrun(kHangs);
  EXPECT_EQ(result.exit_code, 137);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->rank, 1);
  EXPECT_EQ(Content("signals"), "12.3 9\n");
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
  scancel_ = "echo 12.3 > step; (sleep 0.7; rm step; echo gone >> signals) > /dev/null 2>&1 & true";
  const JobResult result = RunSrun(kHangs);
  EXPECT_EQ(Content("signals"), "12.3 9\ngone\n");
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST_F(SupervisorOfAStepTest, SaysThatAKilledStepIsStillThere) {
  scancel_ = "echo 12.3 > step";
  options_.patience_with_step = std::chrono::milliseconds(500);
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

TEST_F(SupervisorOfAStepTest, EndsAnMpirunThatDoesNotEndAfterARankHasFailed) {
  const JobResult result =
      RunLauncher(ChildCommand::Kind::kMpirun,
                  "trap 'echo > told; exit 1' TERM; "
                  "echo 'ddlrun-rank[key]: rank 1 on n2 (pid 7) ended with exit code 3' >&2; "
                  "while :; do sleep 0.05; done");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(Content("told"), "\n");  // it ends its ranks then, if it can
}

TEST_F(SupervisorOfAStepTest, SendsSigusr1WhereSlurmDoesNotPassAnOrderToStopOn) {
  scancel_ = "exit 1";
  const JobResult result = RunSrun(
      "trap 'exit 75' USR1; echo 'ddlrun-rank[key]: step 12.3' >&2; echo > ready; sleep 0.5; " +
      SignalWhenReady("TERM") + "while :; do sleep 0.05; done");
  EXPECT_EQ(result.exit_code, EX_TEMPFAIL);
  EXPECT_EQ(result.stop_signal, SIGTERM);
  EXPECT_THAT(result.notes, ElementsAre("slurmctld did not pass the order to stop on: ranks got "
                                        "SIGUSR1"));
}

TEST_F(SupervisorOfAStepTest, EndsAStartThatHangsAndNamesTheNodes) {
  options_.start_limit = std::chrono::milliseconds(300);
  options_.hosts = {"n1", "n2", "n2", "n3"};
  const JobResult result = RunSrun(
      "echo 'ddlrun-rank[key]: step 12.3' >&2; echo 'ddlrun-rank[key]: rank 0 has started' >&2; "
      "echo 'ddlrun-rank[key]: rank 3 has started' >&2; exec sleep 600");
  EXPECT_EQ(result.exit_code, EX_UNAVAILABLE);
  EXPECT_FALSE(result.failure);
  EXPECT_FALSE(result.has_started);
  EXPECT_THAT(result.not_started, ElementsAre("n2"));
  EXPECT_THAT(result.silent_nodes, ElementsAre("n2"));
  EXPECT_EQ(Content("signals"), "12.3 9\n");
}

TEST_F(SupervisorOfAStepTest, HasNoLimitOnceAllHaveStarted) {
  options_.start_limit = std::chrono::milliseconds(300);
  options_.hosts = {"n1", "n2"};
  for (const auto kind : {ChildCommand::Kind::kSrun, ChildCommand::Kind::kMpirun}) {
    const JobResult result =
        RunLauncher(kind,
                    "echo 'ddlrun-rank[key]: rank 1 has started' >&2; "
                    "echo 'ddlrun-rank[key]: rank 0 has started' >&2; sleep 0.6; exit 69");
    EXPECT_EQ(result.exit_code, 69);
    EXPECT_TRUE(result.has_started);
    EXPECT_THAT(result.not_started, IsEmpty());
  }
}

TEST_F(SupervisorOfAStepTest, KnowsThatAllHadStartedAlsoWhenOneHadEndedBefore) {
  options_.hosts = {"n1", "n2"};
  const JobResult result = RunSrun(
      "echo 'ddlrun-rank[key]: rank 1 has started' >&2; "
      "echo 'ddlrun-rank[key]: rank 1 on n2 (pid 7) ended with exit code 69' >&2; "
      "echo 'ddlrun-rank[key]: rank 0 has started' >&2; exit 69");
  EXPECT_TRUE(result.has_started);
}

TEST_F(SupervisorOfAStepTest, DoesNotCountTheTimeThatSrunWaitsForResources) {
  options_.start_limit = std::chrono::milliseconds(300);
  options_.hosts = {"n1", "n2"};
  const std::string waits =
      "echo 'srun: Job 7 step creation temporarily disabled, retrying (Requested nodes are busy)' "
      ">&2; sleep 0.6; ";
  EXPECT_THAT(RunSrun(waits).not_started, IsEmpty());
  EXPECT_THAT(
      RunSrun(waits + "echo 'srun: Step created for StepId=7.1' >&2; exec sleep 600").not_started,
      ElementsAre("n1", "n2"));
}

TEST_F(SupervisorOfAStepTest, NamesTheNodesOfWhichNothingWasHeard) {
  options_.hosts = {"n1", "n2.site", "n3", "n4", "n4"};
  const std::string some =
      "echo 'ddlrun-rank[key]: rank 0 on n1 (pid 7) ended with exit code 69' >&2; "
      "echo 'srun: error: n[2-3]: tasks 1-2: Terminated' >&2; exit ";
  EXPECT_THAT(RunSrun(some + "69").silent_nodes, ElementsAre("n4"));
  EXPECT_THAT(RunSrun(some + "0").silent_nodes, IsEmpty());
  // Where nothing was heard of any node, something else is wrong.
  EXPECT_THAT(RunSrun("exit 69").silent_nodes, IsEmpty());
}

TEST_F(SupervisorTest, NamesAProgramThatCannotBeStarted) {
  ChildCommand command;
  command.rank = 0;
  command.argv = {"/nonexistent/program"};
  SignalRelay signals;
  try {
    Supervise({command}, {}, signals);
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_UNAVAILABLE);
    EXPECT_STREQ(error.what(), "cannot start /nonexistent/program: No such file or directory");
  }
}

}  // namespace
}  // namespace launcher
