// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/cleanup_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "launcher/base/error.h"
#include "launcher/shim/leftovers.h"
#include "support/number.h"

namespace launcher {
namespace {

// What ddlrun writes to the pipe.  It is smaller than PIPE_BUF, so that it arrives as a whole.
struct Order {
  enum class Kind { kDismissed, kWatch, kForget };
  Kind kind = Kind::kDismissed;
  pid_t group = 0;
  unsigned long long start = 0;  // StartOf its first process
  std::chrono::milliseconds grace{0};
};

// When the process started, in clock ticks since the machine did; 0 where there is no such process,
// or /proc does not tell.
unsigned long long StartOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // The name of the program is in parentheses, and may have parentheses itself.
  std::istringstream fields(text.substr(std::min(text.rfind(')'), text.size() - 1) + 1));
  std::string field;
  for (int number = 3; number < 22; ++number) fields >> field;  // proc(5) counts from 1
  unsigned long long start = 0;
  fields >> start;
  return fields ? start : 0;
}

// Whether the group still has processes.  Once nothing is left of it, another group may get its
// number; the process of this number is then a younger one.
bool IsThere(const Order& watched) {
  if (kill(-watched.group, 0) != 0) return false;
  const unsigned long long start = StartOf(watched.group);
  return start == 0 || watched.start == 0 || start == watched.start;
}

void EndGroup(const Order& watched) {
  constexpr std::chrono::milliseconds kStep{20};
  for (auto left = watched.grace; left.count() > 0 && IsThere(watched); left -= kStep) {
    std::this_thread::sleep_for(kStep);
  }
  if (IsThere(watched)) kill(-watched.group, SIGKILL);
}

// What the guardian does: reads orders until ddlrun dismisses it or is gone.
void Guard(int pipe, const std::string& run_directory) {
  std::vector<Order> watched;
  Order order;
  while (true) {
    const ssize_t got = read(pipe, &order, sizeof(order));
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof(order))) break;
    if (order.kind == Order::Kind::kDismissed) return;
    if (order.kind == Order::Kind::kWatch) watched.push_back(order);
    if (order.kind == Order::Kind::kForget) {
      std::erase_if(watched, [&order](const Order& other) { return other.group == order.group; });
    }
  }
  for (const Order& group : watched) EndGroup(group);
  std::error_code ignored;
  if (!run_directory.empty()) std::filesystem::remove_all(run_directory, ignored);
}

// Sends an order.  An error is ignored: the job goes on when its guardian was killed.
void Send(const Order& order, int pipe) {
  const ssize_t ignored = write(pipe, &order, sizeof(order));
  static_cast<void>(ignored);
}

// Closes every descriptor from `first` on.  Linux has a system call for it since 5.9, and glibc a
// function since 2.34; RHEL 8 has neither, and a container may forbid the call.
void CloseFrom(int first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U) == 0) return;
#endif
  std::vector<int> open_ones;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    const auto fd = support::WholeNumber<int>(entry->path().filename().string());
    if (fd) open_ones.push_back(*fd);
  }
  for (const int fd : open_ones) {
    if (fd >= first) close(fd);
  }
}

}  // namespace

CleanupProcess::CleanupProcess(const std::string& run_directory) {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw OsError("cannot make a pipe");
  }
  support::Descriptor read_end(ends[0]);
  pipe_ = support::Descriptor(ends[1]);
  pid_ = fork();
  if (pid_ < 0) {
    throw OsError("cannot start a process");
  }
  if (pid_ > 0) return;

  // The signals of ddlrun's terminal or job step must not reach the guardian, and it must not keep
  // a pipe open whose end somebody waits for.
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

CleanupProcess::~CleanupProcess() {
  Send({}, pipe_.fd());
  waitpid(pid_, nullptr, 0);
}

void CleanupProcess::Watch(pid_t group, std::chrono::milliseconds grace) {
  Send({Order::Kind::kWatch, group, StartOf(group), grace}, pipe_.fd());
}

void CleanupProcess::Forget(pid_t group) { Send({Order::Kind::kForget, group, 0, {}}, pipe_.fd()); }

namespace {

// None where the kernel does not tell them (CONFIG_PROC_CHILDREN, which distributions have).
std::vector<pid_t> Children() {
  const std::string self = std::to_string(getpid());
  std::ifstream file("/proc/" + self + "/task/" + self + "/children");
  std::vector<pid_t> children;
  for (pid_t pid = 0; file >> pid;) children.push_back(pid);
  return children;
}

}  // namespace

Orphans::Orphans() : no_orphans_(Children()) { AdoptOrphans(); }

Orphans::~Orphans() { prctl(PR_SET_CHILD_SUBREAPER, 0); }

void Orphans::Reap(const std::vector<pid_t>& children) const {
  siginfo_t info = {};
  const bool has_any_ended =
      waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
  if (!has_any_ended) return;
  for (const pid_t pid : Orphaned()) {
    if (std::ranges::find(children, pid) == children.end()) waitpid(pid, nullptr, WNOHANG);
  }
}

std::vector<std::string> Orphans::End(std::chrono::milliseconds terminate_after) const {
  LeftoverOptions options;
  options.spared = no_orphans_.data();
  options.spared_count = static_cast<int>(no_orphans_.size());
  options.terminate_after_ms = static_cast<int>(terminate_after.count());
  const Survivors left = EndLeftovers(options);
  std::vector<std::string> notes;
  for (int i = 0; i < left.count && i < kMaxSurvivors; ++i) {
    const Survivor& process = left.first[i];
    notes.push_back("ranks have left process " + std::to_string(process.pid) + " (" + process.name +
                    ") here, which SIGKILL does not end");
  }
  return notes;
}

std::vector<pid_t> Orphans::Orphaned() const {
  std::vector<pid_t> children = Children();
  std::erase_if(children, [this](pid_t pid) {
    return std::ranges::find(no_orphans_, pid) != no_orphans_.end();
  });
  return children;
}

}  // namespace launcher
