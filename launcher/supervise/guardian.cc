// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/guardian.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "launcher/error.h"

namespace launcher {
namespace {

// What is written to the pipe, smaller than PIPE_BUF and so never torn.
struct Message {
  pid_t group = 0;  // 0: dismissed
  std::chrono::milliseconds grace{0};
};

void EndGroup(const Message& watched) {
  constexpr std::chrono::milliseconds kStep{20};
  for (auto left = watched.grace; left.count() > 0 && kill(-watched.group, 0) == 0; left -= kStep) {
    std::this_thread::sleep_for(kStep);
  }
  kill(-watched.group, SIGKILL);
}

// In the guardian: reads until ddlrun dismisses it or is gone.
void Guard(int pipe, const std::string& run_directory) {
  std::vector<Message> watched;
  Message message;
  while (true) {
    const ssize_t got = read(pipe, &message, sizeof(message));
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof(message))) break;
    if (message.group == 0) return;
    watched.push_back(message);
  }
  for (const Message& group : watched) EndGroup(group);
  std::error_code ignored;
  if (!run_directory.empty()) std::filesystem::remove_all(run_directory, ignored);
}

// Closes every descriptor from `first` on.  The call for it came with Linux 5.9 and its function
// with glibc 2.34; RHEL 8 has neither, and a container may forbid the call.
void CloseFrom(int first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U) == 0) return;
#endif
  std::vector<int> open_ones;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    open_ones.push_back(std::stoi(entry.path().filename()));
  }
  for (const int fd : open_ones) {
    if (fd >= first) close(fd);
  }
}

}  // namespace

Guardian::Guardian(const std::string& run_directory) {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw LaunchError(EX_OSERR, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  Descriptor read_end(ends[0]);
  pipe_ = Descriptor(ends[1]);
  pid_ = fork();
  if (pid_ < 0) {
    throw LaunchError(EX_OSERR, std::string("cannot start a process: ") + std::strerror(errno));
  }
  if (pid_ > 0) return;

  // Signals of ddlrun's terminal or job step must not reach it, and it must hold nothing open that
  // somebody waits to see closed.
  setsid();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  const int own = fcntl(read_end.fd(), F_DUPFD, 3);
  const int nothing = open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, fd);
  dup2(own, 3);
  CloseFrom(4);
  Guard(3, run_directory);
  _exit(0);
}

Guardian::~Guardian() {
  Watch(0, {});
  waitpid(pid_, nullptr, 0);
}

void Guardian::Watch(pid_t group, std::chrono::milliseconds grace) {
  Message message;
  message.group = group;
  message.grace = grace;
  const ssize_t ignored = write(pipe_.fd(), &message, sizeof(message));
  static_cast<void>(ignored);  // a guardian that was killed is no reason to end the job
}

}  // namespace launcher
