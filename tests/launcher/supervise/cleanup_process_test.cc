// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/cleanup_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "tests/support/emulated.h"
#include "tests/support/rejected_calls.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum Outcome : int { kClosed = 0, kHeldOpen = 1, kNoFilter = 77 };

// In a process of its own: whether a guardian that was started with a pipe open holds on to it.
int OutcomeWithCleanupProcess(int rejection) {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return kNoFilter;
  const int high = fcntl(ends[1], F_DUPFD_CLOEXEC, 500);
  if (rejection != 0 && !tests::RejectCalls(SYS_close_range, SYS_close_range, rejection)) {
    return kNoFilter;
  }
  const CleanupProcess cleanup_process("");
  close(ends[1]);
  close(high);
  pollfd watched = {ends[0], 0, 0};  // POLLHUP: no writer is left
  return poll(&watched, 1, 5000) == 1 && (watched.revents & POLLHUP) != 0 ? kClosed : kHeldOpen;
}

class CleanupProcessOnKernel : public testing::TestWithParam<int> {};

TEST_P(CleanupProcessOnKernel, HoldsNothingOpen) {
  const pid_t child = fork();
  if (child == 0) _exit(OutcomeWithCleanupProcess(GetParam()));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "system calls cannot be filtered here";
  EXPECT_EQ(WEXITSTATUS(status), kClosed);
}

// As it is; without the call (Linux before 5.9); where a container forbids it.
INSTANTIATE_TEST_SUITE_P(Answers, CleanupProcessOnKernel, testing::Values(0, ENOSYS, EPERM));

TEST(CleanupProcess, EndsWhatItWatchesWhenItsProcessIsKilled) {
  std::string directory = testing::TempDir() + "guardian.XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  std::array<int, 2> ends = {-1, -1};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t watching = fork();
  if (watching == 0) {
    CleanupProcess cleanup_process(directory);
    const pid_t watched = fork();
    if (watched == 0) {
      setpgid(0, 0);
      execlp("sleep", "sleep", "30", nullptr);
      _exit(1);
    }
    setpgid(watched, watched);
    cleanup_process.Watch(watched, std::chrono::milliseconds(0));
    raise(SIGKILL);
  }
  close(ends[1]);
  waitpid(watching, nullptr, 0);
  pollfd held = {ends[0], 0, 0};  // the watched process has the last writing end
  EXPECT_EQ(poll(&held, 1, 5000), 1);
  // It removes the directory last.
  for (int i = 0; i < 500 && std::filesystem::exists(directory); ++i) usleep(10'000);
  EXPECT_FALSE(std::filesystem::exists(directory));
}

#ifndef SYS_clone3
#define SYS_clone3 435
#endif

// As fork, but the child gets the number `pid`, which must be free; -1 where that is not allowed.
pid_t ForkWithNumber(pid_t pid) {
  struct {
    std::uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
        set_tid_size;
  } arguments = {};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<std::uint64_t>(&pid);
  arguments.set_tid_size = 1;
  return static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof(arguments)));
}

enum class Group { kForgotten, kWithTheNumberOfAnother };

// Kills a process whose guardian knows of a group as `group` says.  Whether a process of the group
// still answers when the guardian is done; nullopt where numbers cannot be chosen.
std::optional<bool> AnswersAfterCleanupProcess(Group group) {
  std::string directory = testing::TempDir() + "guardian.XXXXXX";
  std::array<int, 2> request = {-1, -1};
  std::array<int, 2> answer = {-1, -1};
  if (mkdtemp(directory.data()) == nullptr || pipe(request.data()) != 0 ||
      pipe(answer.data()) != 0) {
    return false;
  }
  const auto become_member = [&] {
    setpgid(0, 0);
    for (int fd = 3; fd < 1024; ++fd) {  // that of the guardian among them
      if (fd != request[0] && fd != answer[1]) close(fd);
    }
    char byte = 0;
    const bool is_done = read(request[0], &byte, 1) == 1 && write(answer[1], &byte, 1) == 1;
    _exit(is_done ? 0 : 1);
  };
  const pid_t watching = fork();
  if (watching == 0) {
    CleanupProcess cleanup_process(directory);
    pid_t member = fork();
    if (member == 0) become_member();
    setpgid(member, member);
    cleanup_process.Watch(member, std::chrono::milliseconds(0));
    if (group == Group::kForgotten) {
      cleanup_process.Forget(member);
    } else {
      kill(member, SIGKILL);
      waitpid(member, nullptr, 0);
      usleep(50'000);  // what tells them apart has a resolution of 10 ms
      member = ForkWithNumber(member);
      if (member == 0) become_member();
      if (member < 0) _exit(kNoFilter);
      setpgid(member, member);
    }
    raise(SIGKILL);
  }
  close(request[0]);
  close(answer[1]);
  int status = 0;
  waitpid(watching, &status, 0);
  std::error_code ignored;
  // The guardian removes the directory last.
  for (int i = 0; i < 500 && std::filesystem::exists(directory, ignored); ++i) usleep(10'000);
  std::filesystem::remove_all(directory, ignored);
  char byte = 1;
  std::signal(SIGPIPE, SIG_IGN);
  const bool answers = write(request[1], &byte, 1) == 1 && read(answer[0], &byte, 1) == 1;
  close(request[1]);
  close(answer[0]);
  return WIFEXITED(status) ? std::nullopt : std::optional(answers);
}

TEST(CleanupProcess, LeavesAGroupAloneThatHasTheNumberOfOneThatEnded) {
  const std::optional<bool> answers = AnswersAfterCleanupProcess(Group::kWithTheNumberOfAnother);
  if (!answers) GTEST_SKIP() << "the number of a process cannot be chosen here";
  EXPECT_TRUE(*answers);
}

TEST(CleanupProcess, ForgetsAGroup) {
  EXPECT_EQ(AnswersAfterCleanupProcess(Group::kForgotten), true);
}

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
