// SPDX-License-Identifier: Apache-2.0

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "launcher/supervise/cleanup_process.h"
#include "tests/support/emulated.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using std::chrono::milliseconds;

void Sleep(milliseconds time) {
  const timespec length = {time.count() / 1000, time.count() % 1000 * 1'000'000};
  nanosleep(&length, nullptr);
}

void Nothing() {}

// The process that a child leaves behind, which does `first` and ends after `life`.
pid_t Leave(milliseconds life, void (*first)() = Nothing) {
  std::array<int, 2> ends = {-1, -1};
  if (pipe(ends.data()) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    const pid_t orphan = fork();
    if (orphan == 0) {
      first();
      const pid_t self = getpid();
      const bool has_reported = write(ends[1], &self, sizeof(self)) == sizeof(self);
      close(ends[0]);
      close(ends[1]);
      if (has_reported) Sleep(life);
      _exit(0);
    }
    _exit(0);
  }
  close(ends[1]);
  pid_t orphan = -1;
  if (read(ends[0], &orphan, sizeof(orphan)) != sizeof(orphan)) orphan = -1;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return orphan;
}

bool IsThere(pid_t pid) { return kill(pid, 0) == 0; }

class OrphansTest : public testing::Test {
 protected:
  void SetUp() override {
    if (tests::IsEmulated()) GTEST_SKIP() << "QEMU does not emulate PR_SET_CHILD_SUBREAPER";
  }
};

TEST_F(OrphansTest, AreWaitedForAndReaped) {
  const Orphans orphans;
  const pid_t pid = Leave(milliseconds(50));
  ASSERT_GT(pid, 0);
  orphans.End(milliseconds(60'000));
  EXPECT_FALSE(IsThere(pid));
}

TEST_F(OrphansTest, GetSigtermAndThenSigkill) {
  const Orphans orphans;
  const pid_t obeying = Leave(milliseconds(60'000));
  const pid_t deaf = Leave(milliseconds(60'000), [] { signal(SIGTERM, SIG_IGN); });
  ASSERT_GT(obeying, 0);
  ASSERT_GT(deaf, 0);
  orphans.End(milliseconds(100));
  EXPECT_FALSE(IsThere(obeying));
  EXPECT_FALSE(IsThere(deaf));
}

TEST_F(OrphansTest, AreNotTheChildrenFromBefore) {
  const pid_t child = fork();
  if (child == 0) {
    Sleep(milliseconds(60'000));
    _exit(0);
  }
  const Orphans orphans;
  orphans.End(milliseconds(20));
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), 0);
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST_F(OrphansTest, AreDaemonsAsWell) {
  const Orphans orphans;
  const pid_t daemon = Leave(milliseconds(60'000), [] { setsid(); });
  ASSERT_GT(daemon, 0);
  orphans.End(milliseconds(0));
  EXPECT_FALSE(IsThere(daemon));
}

TEST_F(OrphansTest, ThatEndDuringTheJobAreReapedAndNoOther) {
  const pid_t older = fork();
  if (older == 0) _exit(0);
  const Orphans orphans;
  const pid_t pid = Leave(milliseconds(0));
  ASSERT_GT(pid, 0);
  while (IsThere(pid)) orphans.Reap({});
  std::vector<pid_t> children(2);
  for (pid_t& child : children) {
    child = fork();
    if (child == 0) _exit(0);
    siginfo_t info = {};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  }
  orphans.Reap(children);
  for (const pid_t child : children) EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(waitpid(older, nullptr, 0), older);
}

TEST_F(OrphansTest, AreNobodysAfterwards) {
  { const Orphans orphans; }
  const pid_t pid = Leave(milliseconds(60'000));
  ASSERT_GT(pid, 0);
  errno = 0;
  EXPECT_EQ(waitpid(pid, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  kill(pid, SIGKILL);
}

}  // namespace
}  // namespace launcher
