// SPDX-License-Identifier: Apache-2.0
//
// The supervisor of an srun or mpirun that has not started any rank so far.

#include <csignal>

#include "launcher/base/error.h"
#include "launcher/supervise/supervisor.h"
#include "tests/launcher/supervise/supervisor_fixture.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

class SupervisorBeforeStartTest : public SupervisorTest {
 protected:
  SupervisorBeforeStartTest() {
    std::signal(SIGINT, SIG_DFL);  // a shell that started this in the background ignores it
    options_.event_key = "key";
    options_.hosts = {"n1", "n2"};
  }

  JobResult RunLauncher(const std::string& launcher, const std::string& script) const {
    ChildCommand command;
    command.launcher = &TraitsOf(launcher.c_str());
    command.argv = {"/bin/sh", "-c", "cd '" + directory_ + "'; " + script};
    command.environment = {"PATH=/usr/bin:/bin"};
    command.may_hide_events = may_hide_events_;
    SignalRelay signals;
    return Supervise({command}, options_, signals);
  }

  // An srun or mpirun that ends with one code at SIGTERM and another one at SIGALRM is told to
  // stop.
  JobResult Stop(const std::string& launcher, const std::string& signal, const std::string& says,
                 const std::string& at_term, const std::string& at_alarm) const {
    return RunLauncher(launcher, "trap 'exit " + at_term + "' TERM; trap 'exit " + at_alarm +
                                     "' ALRM; " + says + "echo > ready; " +
                                     SignalWhenReady(signal) + "while :; do sleep 0.05; done");
  }

  SupervisorOptions options_;
  bool may_hide_events_ = false;
};

TEST_F(SupervisorBeforeStartTest, AnOrderToStopIsTheExitCodeWhateverSrunOrMpirunSays) {
  for (const char* const launcher : {"srun", "mpirun"}) {
    const JobResult result = Stop(launcher, "TERM", "", "1", "0");
    EXPECT_EQ(result.exit_code, 128 + SIGTERM);
    EXPECT_EQ(result.stop_signal, SIGTERM);
    EXPECT_EQ(Stop(launcher, "TERM", "", "0", "0").exit_code, 128 + SIGTERM);
    EXPECT_EQ(Stop(launcher, "INT", "", "1", "0").exit_code, 128 + SIGINT);
    EXPECT_EQ(Stop(launcher, "HUP", "", "1", "0").exit_code, 128 + SIGHUP);
  }
}

TEST_F(SupervisorBeforeStartTest, AnSrunOrMpirunThatDiesIsOneThatCouldNotStart) {
  for (const char* const launcher : {"srun", "mpirun"}) {
    const JobResult result = RunLauncher(launcher, "kill -SEGV $$");
    EXPECT_EQ(result.exit_code, EX_UNAVAILABLE);
    EXPECT_TRUE(result.is_before_start);
    const std::string starts = "echo 'ddlrun-rank[key]: rank 1 has started' >&2; ";
    EXPECT_EQ(RunLauncher(launcher, starts + "kill -SEGV $$").exit_code, 139);
  }
  may_hide_events_ = true;  // ranks may have run
  const JobResult hidden = RunLauncher("mpirun", "kill -SEGV $$");
  EXPECT_EQ(hidden.exit_code, 139);
  EXPECT_FALSE(hidden.is_before_start);
}

// Rejects a start after a tenth of a second, and one that has failed at its end.
class RejectsStart : public JobWatcher {
 public:
  void Poll(WatchedJob& job) override {
    if (job.Now() >= end_ && job.IsBeforeStart()) job.Kill(kRejection);
  }
  void OnEnd(const WatchedJob& job, JobResult* result) override {
    if (job.IsBeforeStart() && !result->stop_requested) result->own_end = kRejection;
  }
  Deadline deadline() const override { return end_; }

 private:
  const OwnEnd kRejection{OwnEnd::Kind::kRejected, EX_CONFIG, "n2 is gone"};
  const WatchedJob::Clock::time_point end_ =
      WatchedJob::Clock::now() + std::chrono::milliseconds(100);
};

TEST_F(SupervisorBeforeStartTest, AWatcherMayRejectTheStart) {
  const std::string waits = "trap 'exit 1' TERM; while :; do sleep 0.05; done";
  const std::string starts = "echo 'ddlrun-rank[key]: rank 1 has started' >&2; ";
  const auto run = [this](const char* launcher, const std::string& script) {
    options_.watchers.clear();
    options_.watchers.push_back(std::make_unique<RejectsStart>());
    return RunLauncher(launcher, script);
  };
  for (const char* const launcher : {"srun", "mpirun"}) {
    for (const std::string& script : {waits, std::string("exit 1"), std::string("kill -SEGV $$")}) {
      const JobResult result = run(launcher, script);
      EXPECT_EQ(result.own_end.value().text, "n2 is gone") << script;
      EXPECT_EQ(result.exit_code, EX_CONFIG) << script;
    }
    const JobResult started = run(launcher, starts + "sleep 0.3; exit 1");
    EXPECT_FALSE(started.own_end);
    EXPECT_EQ(started.exit_code, EX_UNAVAILABLE);
  }
}

TEST_F(SupervisorBeforeStartTest, AnEndOfSrunOrMpirunByItselfIsOfNoRank) {
  const std::string starts = "echo 'ddlrun-rank[key]: rank 1 has started' >&2; ";
  const std::string ends = "echo 'ddlrun-rank[key]: rank 1 has ended' >&2; ";
  for (const char* const launcher : {"srun", "mpirun"}) {
    for (const std::string code : {"1", "131", "132", "213"}) {
      for (const std::string& before : {std::string(), starts, starts + ends}) {
        const JobResult result =
            RunLauncher(launcher, before + "echo ---- >&2; echo refused >&2; exit " + code);
        EXPECT_EQ(result.exit_code, EX_UNAVAILABLE) << before << code;
        EXPECT_TRUE(result.launcher_has_given_up);
        EXPECT_TRUE(result.launcher_end.ends_with(" ended by itself, with exit code " + code));
        EXPECT_THAT(result.launcher_lines, ElementsAre("refused"));
        EXPECT_EQ(result.launcher_advice, "");
        EXPECT_EQ(result.is_before_start, before.empty());
        EXPECT_FALSE(result.has_started);
      }
    }
    // A rank that has failed, and one whose shim has refused it, have their own verdict.
    const std::string failed =
        "echo 'ddlrun-rank[key]: rank 1 on n2 (pid 7) ended with exit code 3 at x' >&2; ";
    EXPECT_EQ(RunLauncher(launcher, starts + failed + "exit 1").exit_code, 3);
    // An mpirun that is told not to abort (orte_abort_on_non_zero_status) ends with 0.
    EXPECT_EQ(RunLauncher(launcher, starts + failed + ends + "exit 0").exit_code, 3);
    const std::string rejected = "echo 'ddlrun-rank: [ERROR DDL-20-78] rank 1 on n2: x' >&2; ";
    EXPECT_EQ(RunLauncher(launcher, rejected + "exit 78").exit_code, 78);
  }
  const JobResult without_daemon = RunLauncher(
      "mpirun",
      "echo 'An ORTE daemon has unexpectedly failed after launch and before' >&2; exit 1");
  EXPECT_THAT(without_daemon.launcher_advice, HasSubstr("/tmp/ompi.HOST.UID"));
  const JobResult noticed = RunLauncher(
      "mpirun", starts +
                    "echo 'mpirun noticed that process rank 1 with PID 7 on node n2 exited on "
                    "signal 9 (Killed).' >&2; exit 137");
  EXPECT_EQ(noticed.exit_code, 137);
  ASSERT_TRUE(noticed.failure);
  EXPECT_EQ(noticed.failure->host, "n2");
  may_hide_events_ = true;  // of an mpirun through which nothing is heard it may be a rank's
  EXPECT_EQ(RunLauncher("mpirun", "exit 3").exit_code, 3);
}

TEST_F(SupervisorBeforeStartTest, TheShimsAndMpiAbortSayHowRanksOfHydraHaveEnded) {
  const std::string starts = "echo 'ddlrun-rank[key]: rank 1 has started' >&2; ";
  const std::string failed =
      "echo 'ddlrun-rank[key]: rank 1 on n2 (pid 7) ended with exit code 3 at x' >&2; ";
  EXPECT_EQ(RunLauncher("hydra", starts + failed + "exit 0").exit_code, 3);
  const std::string gone = "echo 'ddlrun-rank[key]: rank 1 is gone, 143' >&2; ";
  EXPECT_EQ(RunLauncher("hydra", starts + gone + "exit 0").exit_code, 143);
  EXPECT_EQ(RunLauncher("hydra", starts + "exit 5").exit_code, 5);
  EXPECT_EQ(RunLauncher("hydra", starts + "exit 255").exit_code, EX_UNAVAILABLE);
  EXPECT_EQ(RunLauncher("hydra", "exit 5").exit_code, EX_UNAVAILABLE);
  const JobResult aborted =
      RunLauncher("hydra", starts +
                               "echo 'Abort(5) on node 1 (rank 1 in comm 0): application called "
                               "MPI_Abort(MPI_COMM_WORLD, 5) - process 1' >&2; exit 5");
  EXPECT_EQ(aborted.exit_code, 5);
  ASSERT_TRUE(aborted.failure);
  EXPECT_EQ(aborted.failure->host, "n2");
}

TEST_F(SupervisorBeforeStartTest, AnMpirunThatEndsWithZeroHasToHaveToldOfTheEndOfEveryRank) {
  const std::string starts =
      "for rank in 0 1; do echo \"ddlrun-rank[key]: rank $rank has started\" >&2; done; ";
  const std::string first = "echo 'ddlrun-rank[key]: rank 0 has ended' >&2; ";
  const std::string second = "echo 'ddlrun-rank[key]: rank 1 has ended' >&2; ";
  const JobResult result = RunLauncher("mpirun", starts + first);
  EXPECT_EQ(result.exit_code, EX_UNAVAILABLE);
  EXPECT_THAT(result.unresponsive, ElementsAre("rank 1 on n2"));
  EXPECT_EQ(RunLauncher("mpirun", first).exit_code, EX_UNAVAILABLE);
  EXPECT_THAT(RunLauncher("mpirun", starts).unresponsive,
              ElementsAre("rank 0 on n1", "rank 1 on n2"));
  EXPECT_EQ(RunLauncher("mpirun", starts + first + second).exit_code, EX_OK);
  EXPECT_EQ(RunLauncher("mpirun", "true").exit_code, EX_OK);  // mpirun --version
  EXPECT_EQ(RunLauncher("srun", starts + first).exit_code, EX_OK);
  may_hide_events_ = true;
  EXPECT_EQ(RunLauncher("mpirun", starts + first).exit_code, EX_OK);
}

TEST_F(SupervisorBeforeStartTest, OnceARankHasStartedTheRanksGetTheOrderAndTheirCodeCounts) {
  const std::string starts = "echo 'ddlrun-rank[key]: rank 1 has started' >&2; sleep 0.5; ";
  EXPECT_EQ(Stop("mpirun", "TERM", starts, "1", "75").exit_code, EX_TEMPFAIL);
  EXPECT_EQ(Stop("mpirun", "TERM", starts, "1", "0").exit_code, EX_OK);
  EXPECT_EQ(Stop("srun", "TERM", starts, "75", "1").exit_code, EX_TEMPFAIL);
}

TEST_F(SupervisorBeforeStartTest, RanksThatMayRunUnheardGetTheOrderAndTheirCodeCounts) {
  may_hide_events_ = true;
  EXPECT_EQ(Stop("mpirun", "TERM", "", "1", "75").exit_code, EX_TEMPFAIL);
  may_hide_events_ = false;
  options_.event_key = "";  // without shims nothing is ever heard
  EXPECT_EQ(Stop("mpirun", "TERM", "", "75", "1").exit_code, EX_TEMPFAIL);
}

// Kills the job after half a second unless it may have started a process then.
class KillsWhatHasStartedNone : public JobWatcher {
 public:
  void OnLaunch(WatchedJob& job) override { look_at_ = job.Now() + std::chrono::milliseconds(500); }
  void Poll(WatchedJob& job) override {
    if (!look_at_ || job.Now() < *look_at_) return;
    look_at_.reset();
    if (!job.MayHaveStartedAny()) job.Kill({.exit_code = 69, .text = "none"});
  }
  Deadline deadline() const override { return look_at_; }

 private:
  Deadline look_at_;
};

TEST_F(SupervisorBeforeStartTest, KnowsWhetherMpirunHasStartedAnyProcess) {
  const auto run = [this](const std::string& script) {
    options_.watchers.clear();
    options_.watchers.push_back(std::make_unique<KillsWhatHasStartedNone>());
    return RunLauncher("mpirun", script).own_end.has_value();
  };
  EXPECT_TRUE(run("exec sleep 600"));
  EXPECT_FALSE(run("sleep 1; exit 5"));  // which may be a rank of which nothing is heard
}

}  // namespace
}  // namespace launcher
