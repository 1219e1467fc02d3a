// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/guardian.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>

#include "tests/support/refused_calls.h"

namespace launcher {
namespace {

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum Outcome : int { kClosed = 0, kHeldOpen = 1, kNoFilter = 77 };

// In a process of its own: whether a guardian that was started with a pipe open holds on to it.
int OutcomeWithGuardian(int refusal) {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return kNoFilter;
  const int high = fcntl(ends[1], F_DUPFD_CLOEXEC, 500);
  if (refusal != 0 && !tests::RefuseCalls(SYS_close_range, SYS_close_range, refusal)) {
    return kNoFilter;
  }
  const Guardian guardian("");
  close(ends[1]);
  close(high);
  pollfd watched = {ends[0], 0, 0};  // POLLHUP: no writer is left
  return poll(&watched, 1, 5000) == 1 && (watched.revents & POLLHUP) != 0 ? kClosed : kHeldOpen;
}

class GuardianOnKernel : public testing::TestWithParam<int> {};

TEST_P(GuardianOnKernel, HoldsNothingOpen) {
  const pid_t child = fork();
  if (child == 0) _exit(OutcomeWithGuardian(GetParam()));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "system calls cannot be filtered here";
  EXPECT_EQ(WEXITSTATUS(status), kClosed);
}

// As it is; without the call (Linux before 5.9); where a container forbids it.
INSTANTIATE_TEST_SUITE_P(Answers, GuardianOnKernel, testing::Values(0, ENOSYS, EPERM));

TEST(Guardian, EndsWhatItWatchesWhenItsProcessIsKilled) {
  std::string folder = testing::TempDir() + "guardian.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::array<int, 2> ends = {-1, -1};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t watching = fork();
  if (watching == 0) {
    Guardian guardian(folder);
    const pid_t watched = fork();
    if (watched == 0) {
      setpgid(0, 0);
      execlp("sleep", "sleep", "30", nullptr);
      _exit(1);
    }
    setpgid(watched, watched);
    guardian.Watch(watched, std::chrono::milliseconds(0));
    raise(SIGKILL);
  }
  close(ends[1]);
  waitpid(watching, nullptr, 0);
  pollfd held = {ends[0], 0, 0};  // the watched process has the last writing end
  EXPECT_EQ(poll(&held, 1, 5000), 1);
  // It removes the folder last.
  for (int i = 0; i < 500 && std::filesystem::exists(folder); ++i) usleep(10'000);
  EXPECT_FALSE(std::filesystem::exists(folder));
}

}  // namespace
}  // namespace launcher
