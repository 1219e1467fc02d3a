// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/stopped_rank_monitor.h"

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/test.h"

namespace launcher {
namespace {

using Step = StoppedRankMonitor::Step;

constexpr double kGrace = 3;

// A process that waits, and is killed at the end.
class Waiting {
 public:
  Waiting() : pid_(fork()) {
    if (pid_ != 0) return;
    for (;;) pause();
  }
  ~Waiting() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

void ExpectStopped(pid_t program, pid_t stopped) {
  for (int i = 0; i < 500 && FindStopped(program) != stopped; ++i) usleep(10'000);
  EXPECT_EQ(FindStopped(program), stopped);
}

TEST(FindStopped, FindsOneThatGotSigstop) {
  const Waiting waiting;
  EXPECT_EQ(FindStopped(waiting.pid()), 0);
  kill(waiting.pid(), SIGSTOP);
  ExpectStopped(waiting.pid(), waiting.pid());
  ExpectStopped(getpid(), waiting.pid());  // below this one
  kill(waiting.pid(), SIGCONT);
  ExpectStopped(getpid(), 0);
}

TEST(FindStopped, FindsOneThatIsTraced) {
  const Waiting waiting;
  if (ptrace(PTRACE_ATTACH, waiting.pid(), nullptr, nullptr) != 0) GTEST_SKIP() << "no ptrace";
  waitpid(waiting.pid(), nullptr, 0);
  ExpectStopped(waiting.pid(), waiting.pid());
}

TEST(FindStopped, FindsTheWorkerOfAScript) {
  const pid_t script = fork();
  if (script == 0) {
    setpgid(0, 0);
    execl("/bin/sh", "sh", "-c", "sleep 600 & sleep 600; true", nullptr);
    _exit(1);
  }
  pid_t worker = 0;
  const std::string children =
      "/proc/" + std::to_string(script) + "/task/" + std::to_string(script) + "/children";
  for (int i = 0; i < 500 && !(std::ifstream(children) >> worker >> worker); ++i) usleep(10'000);
  kill(worker, SIGSTOP);
  ExpectStopped(script, worker);
  kill(-script, SIGKILL);
  waitpid(script, nullptr, 0);
}

TEST(FindStopped, FindsNothingOfAProcessThatIsGone) { EXPECT_EQ(FindStopped(0x7ffffffe), 0); }

TEST(StoppedRankMonitor, SaysOnceThatARankHasBeenStoppedForLong) {
  StoppedRankMonitor watch;
  EXPECT_EQ(watch.Look(7, 100, false, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 109.9, false, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 110, false, kGrace), Step::kPrint);
  EXPECT_EQ(watch.Look(7, 1000, false, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(0, 1001, false, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 1002, false, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 1012, false, kGrace), Step::kPrint);
}

TEST(StoppedRankMonitor, KillsAGraceAfterTheOrderToStop) {
  StoppedRankMonitor watch;
  EXPECT_EQ(watch.Look(7, 100, false, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 105, true, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 107.9, true, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 108, true, kGrace), Step::kKill);
  EXPECT_EQ(watch.Look(8, 109, true, kGrace), Step::kKill);  // the next one
}

TEST(StoppedRankMonitor, LetsARankThatGoesOnTakeItsTime) {
  StoppedRankMonitor watch;
  EXPECT_EQ(watch.Look(7, 100, true, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(0, 101, true, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(0, 1000, true, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 1001, true, kGrace), Step::kNothing);
  EXPECT_EQ(watch.Look(7, 1004, true, kGrace), Step::kKill);
}

}  // namespace
}  // namespace launcher
