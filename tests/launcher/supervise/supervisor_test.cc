// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/supervisor.h"

#include <sysexits.h>
#include <unistd.h>

#include <csignal>

#include "launcher/base/error.h"
#include "tests/launcher/supervise/supervisor_fixture.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

TEST_F(SupervisorTest, SucceedsWhenAllRanksDo) {
  const JobResult result = Run({"true", "exit 0"}, kLong);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_FALSE(result.failure);
}

TEST_F(SupervisorTest, PassesOnTheCodeOfTheFirstFailingRankAndEndsTheOthers) {
  const JobResult result = Run({"exec sleep 600", "echo why; exit 3"}, kLong);
  EXPECT_EQ(result.exit_code, 3);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->rank, 1);
  EXPECT_EQ(result.failure->host, "n2");
  EXPECT_EQ(result.failure->signal, 0);
  EXPECT_THAT(result.failure->last_lines, Contains("why"));
}

TEST_F(SupervisorTest, NamesTheRankThatWasKilledAndNoneThatCrashesAtItsEnd) {
  const std::string waits = "while :; do sleep 0.05; done";
  const std::string when_ready = "while [ ! -e ready ]; do sleep 0.02; done; rm ready; ";
  JobResult result = Run({when_ready + "exit 69",
                          "trap '' TERM; echo > ready; while [ -e ready ]; do sleep 0.02; done; "
                          "sleep 0.3; kill -KILL $$"},
                         kLong);
  ASSERT_TRUE(result.failure.has_value());
  EXPECT_EQ(result.failure->rank, 1);
  EXPECT_EQ(result.exit_code, 137);
  result = Run({when_ready + "exit 3", "trap 'kill -SEGV $$' TERM; echo > ready; " + waits}, kLong);
  ASSERT_TRUE(result.failure.has_value());
  EXPECT_EQ(result.failure->rank, 0);
  EXPECT_EQ(result.exit_code, 3);
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
  std::signal(SIGINT, SIG_DFL);  // a shell that started this in the background ignores it
  const JobResult result = Run({"trap 'echo > once' INT; echo > ready; " + SignalWhenReady("INT") +
                                "while [ ! -e once ]; do sleep 0.02; done; kill -INT " +
                                std::to_string(getpid()) + "; while :; do sleep 0.05; done"},
                               kLong);
  EXPECT_EQ(result.exit_code, 137);
}

TEST_F(SupervisorTest, KnowsThatItWasToldToStopAndNotByWhichSignalRanksAreAskedForACheckpoint) {
  const std::string waits = "while :; do sleep 0.05; done";
  const std::string stops = "trap 'exit 75' TERM USR1; echo > ready; ";
  EXPECT_TRUE(Run({stops + SignalWhenReady("TERM") + waits}, kLong).stop_requested);
  const JobResult result = Run({stops + SignalWhenReady("USR1") + waits}, kLong);
  EXPECT_EQ(result.exit_code, EX_TEMPFAIL);
  EXPECT_FALSE(result.stop_requested);
}

TEST_F(SupervisorTest, LearnsFromSrunWhichNodeIsLost) {
  ChildCommand command;
  command.launcher = &TraitsOf("srun");
  command.argv = {"/bin/sh", "-c", "echo 'srun: error: Node failure on n2' >&2; exit 137"};
  SignalRelay signals;
  const JobResult result = Supervise({command}, SupervisorOptions{}, signals);
  EXPECT_EQ(result.exit_code, 137);
  EXPECT_THAT(result.lost_nodes, ElementsAre("n2"));
}

TEST_F(SupervisorTest, DoesNotBelieveThatAJobWentWellWhichHasLostANode) {
  ChildCommand command;
  command.launcher = &TraitsOf("mpirun");
  command.argv = {"/bin/sh", "-c", "echo '  Remote daemon: [prterun-n1-9@0,1] on node n2' >&2"};
  SignalRelay signals;
  const JobResult result = Supervise({command}, SupervisorOptions{}, signals);
  EXPECT_EQ(result.exit_code, EX_UNAVAILABLE);
  EXPECT_THAT(result.lost_nodes, ElementsAre("n2"));
  command.argv = {"/bin/sh", "-c", "echo 'srun returned non-zero exit status (9) from launching'"};
  EXPECT_EQ(Supervise({command}, SupervisorOptions{}, signals).exit_code, EX_OK);  // by a program
  command.argv.back() += " >&2";
  EXPECT_EQ(Supervise({command}, SupervisorOptions{}, signals).exit_code, EX_UNAVAILABLE);
}

TEST_F(SupervisorTest, SaysThatSrunOrMpirunWasKilledByOthers) {
  SignalRelay signals;
  ChildCommand command;
  command.argv = {"/bin/sh", "-c", "kill -KILL $$"};
  command.launcher = &TraitsOf("srun");
  JobResult result = Supervise({command}, SupervisorOptions{}, signals);
  EXPECT_EQ(result.exit_code, 137);
  EXPECT_EQ(result.launcher_end, "srun was ended by signal 9 (Killed)");
  command.launcher = &TraitsOf("mpirun");
  EXPECT_EQ(Supervise({command}, SupervisorOptions{}, signals).launcher_end,
            "mpirun was ended by signal 9 (Killed)");
  // An exit code is its own verdict, and a rank's end comes before all others.
  command.argv = {"/bin/sh", "-c", "exit 9"};
  EXPECT_EQ(Supervise({command}, SupervisorOptions{}, signals).launcher_end, "");
  command.launcher = &TraitsOf("srun");
  command.argv = {"/bin/sh", "-c",
                  "echo 'srun: error: n2: task 1: Killed' >&2; sleep 0.2; kill -KILL $$"};
  result = Supervise({command}, SupervisorOptions{}, signals);
  EXPECT_EQ(result.launcher_end, "");
  EXPECT_EQ(result.failure->rank, 1);
}

TEST_F(SupervisorTest, NamesAProgramThatCannotBeStarted) {
  ChildCommand command;
  command.rank = 0;
  command.argv = {"/nonexistent/program"};
  SignalRelay signals;
  EXPECT_EQ(
      tests::Rejection<LaunchError>(EX_UNAVAILABLE, [&] { Supervise({command}, {}, signals); }),
      "cannot start /nonexistent/program: No such file or directory");
}

}  // namespace
}  // namespace launcher
