// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/leftovers.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "tests/support/emulated.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

// Long enough for a machine that is busy.
constexpr int kLong = 30'000;

class LeftoversTest : public testing::Test {
 protected:
  void SetUp() override {
    if (tests::IsEmulated()) GTEST_SKIP() << "QEMU does not emulate PR_SET_CHILD_SUBREAPER";
  }

  // What EndLeftovers leaves of a rank that runs `script` and then ends: how many processes, in a
  // process of its own.  The script tells by the file "ready" that all is there.
  static int LeftOf(const std::string& script, const LeftoverOptions& options) {
    const std::string ready = testing::TempDir() + "leftovers." + std::to_string(getpid());
    const pid_t shim = fork();
    if (shim == 0) {
      AdoptOrphans();
      const pid_t rank = fork();
      if (rank == 0) {
        setenv("ready", ready.c_str(), 1);
        execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
        _exit(127);
      }
      waitpid(rank, nullptr, 0);
      while (access(ready.c_str(), F_OK) != 0) usleep(2'000);
      const int left = EndLeftovers(options).count;
      // No child is left to wait for, either.
      const bool has_none = waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
      _exit(left == 0 && !has_none ? 99 : left);
    }
    int status = 0;
    waitpid(shim, &status, 0);
    unlink(ready.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

TEST_F(LeftoversTest, AreEnded) {
  struct Case {
    const char* script;
    int grace_ms;
  };
  const std::string deaf = "trap '' TERM; : > $ready; while :; do sleep 1; done";
  const std::array<Case, 7> cases = {{
      {": > $ready", kLong},
      {"sleep 300 & : > $ready", kLong},
      {"setsid sleep 300 & : > $ready", kLong},
      {"(setsid sh -c 'sleep 300 & sleep 300 & : > $ready; wait' &)", kLong},
      {"for i in $(seq 64); do setsid sleep 300 & done; : > $ready", kLong},
      {"setsid sh -c 'sleep 300 & kill -STOP $$' & : > $ready", 200},
      // One that forks again and again, and never lives long.
      {"f() { : > $ready; (sleep 0.01; f) & exit; }; trap '' TERM; f", 20},
  }};
  for (const Case& each : cases) {
    LeftoverOptions options;
    options.grace_ms = each.grace_ms;
    options.kill_ms = kLong;
    EXPECT_EQ(LeftOf(each.script, options), 0) << each.script;
  }
  LeftoverOptions options;
  options.grace_ms = 50;
  options.kill_ms = kLong;
  EXPECT_EQ(LeftOf("setsid sh -c \"" + deaf + "\" &", options), 0);
}

TEST_F(LeftoversTest, GetSigtermAndTheirGrace) {
  const std::string file = testing::TempDir() + "leftovers_end." + std::to_string(getpid());
  LeftoverOptions options;
  options.grace_ms = kLong;
  EXPECT_EQ(LeftOf("setsid sh -c 'trap \"sleep 0.2; echo ended > " + file +
                       "; exit\" TERM; : > $ready; while :; do sleep 0.05; done' &",
                   options),
            0);
  std::string text;
  std::getline(std::ifstream(file), text);
  EXPECT_EQ(text, "ended");
  unlink(file.c_str());
}

TEST_F(LeftoversTest, MayEndByThemselvesBeforeTheyAreTerminated) {
  const std::string file = testing::TempDir() + "leftovers_own." + std::to_string(getpid());
  LeftoverOptions options;
  options.terminate_after_ms = kLong;
  EXPECT_EQ(LeftOf("sh -c ': > $ready; sleep 0.2; echo ended > " + file + "' &", options), 0);
  std::string text;
  std::getline(std::ifstream(file), text);
  EXPECT_EQ(text, "ended");
  unlink(file.c_str());
}

TEST_F(LeftoversTest, AreNamedWhenTheyCannotBeEnded) {
  const pid_t child = fork();
  if (child == 0) {
    AdoptOrphans();
    // A process without root's rights cannot end one of root's.
    const pid_t of_root = fork();
    if (of_root == 0) {
      alarm(5);
      pause();
      _exit(0);
    }
    if (setuid(65534) != 0) _exit(77);
    LeftoverOptions options;
    options.grace_ms = 10;
    options.kill_ms = 50;
    const Survivors left = EndLeftovers(options);
    _exit(left.count == 1 && left.first[0].pid == of_root && left.first[0].name[0] != '\0' ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs root";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A process with several threads: its first thread ends before the others, by pthread_exit(3), or
// for the moment in which a process that was killed gives back its memory.
TEST_F(LeftoversTest, AreThereUntilTheirLastThreadHasEnded) {
  const pid_t child = fork();
  if (child == 0) {
    std::thread([] {
      for (;;) pause();
    }).detach();
    syscall(SYS_exit, 0);  // of this thread alone; pthread_exit(3) would unwind the test
  }
  while (ReadProcessState(child).state != 'Z') usleep(1'000);
  const ProcessState running = ReadProcessState(child);
  EXPECT_GE(running.threads, 2);
  EXPECT_FALSE(running.HasEnded());
  LeftoverOptions options;
  options.grace_ms = kLong;
  options.kill_ms = kLong;
  EXPECT_EQ(EndLeftovers(options).count, 0);
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), -1) << "it is still there";
}

TEST_F(LeftoversTest, HaveEndedThoughNobodyHasWaitedForThem) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(ReadProcessState(child).state, 'Z');
  EXPECT_TRUE(ReadProcessState(child).HasEnded());
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(ReadProcessState(child).HasEnded());
}

TEST_F(LeftoversTest, AreNotChildrenThatAreSpared) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  LeftoverOptions options;
  options.spared = &child;
  options.spared_count = 1;
  options.grace_ms = 0;
  EXPECT_EQ(EndLeftovers(options).count, 0);
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0);
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace launcher
