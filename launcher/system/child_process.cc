// SPDX-License-Identifier: Apache-2.0

#include "launcher/system/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "launcher/base/error.h"
#include "launcher/system/open_files.h"

namespace launcher {
namespace {

// `fd`, or a copy of it above the standard streams.  Where ddlrun was started with closed standard
// streams, a new descriptor gets one of their numbers, and the dup2 that gives the child its
// streams would do nothing, or close it.
support::Descriptor AboveStandardStreams(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return support::Descriptor(fd);
  const support::Descriptor low(fd);
  return support::Descriptor(fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

struct Pipe {
  support::Descriptor read_end, write_end;

  explicit Pipe(bool wanted) {
    if (!wanted) return;
    std::array<int, 2> ends = {-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw OsError("cannot make a pipe");
    read_end = AboveStandardStreams(ends[0]);
    write_end = AboveStandardStreams(ends[1]);
  }
};

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// In the child.  Returns only when something failed, with errno set.
void BecomeProgram(const ChildSpec& spec, pid_t parent, int stdin_fd, int stdout_fd, int stderr_fd,
                   char* const* argv, char* const* environment) {
  setsid();
  prctl(PR_SET_PDEATHSIG, spec.death_signal);
  if (getppid() != parent) _exit(128 + SIGKILL);  // ddlrun died before prctl
  if (stdin_fd >= 0 && dup2(stdin_fd, STDIN_FILENO) < 0) return;
  if (stdout_fd >= 0 && dup2(stdout_fd, STDOUT_FILENO) < 0) return;
  if (stderr_fd >= 0 && dup2(stderr_fd, STDERR_FILENO) < 0) return;
  sigprocmask(SIG_SETMASK, &spec.signal_mask, nullptr);
  RestoreOpenFileLimit();
  execve(argv[0], argv, environment);
}

}  // namespace

ChildProcess StartChild(const ChildSpec& spec) {
  const std::vector<char*> argv = Pointers(spec.argv);
  const std::vector<char*> environment = Pointers(spec.environment);
  // Two who read from one terminal would each get some of what is typed.
  const bool inherits_stdin = spec.reads_stdin && isatty(STDIN_FILENO) == 0;
  const support::Descriptor nothing =
      AboveStandardStreams(inherits_stdin ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC));
  Pipe stdout_pipe(spec.capture_stdout);
  Pipe stderr_pipe(spec.capture_stderr);
  Pipe exec_error(true);

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw OsError("cannot start another process");
  if (pid == 0) {
    BecomeProgram(spec, parent, nothing.fd(), stdout_pipe.write_end.fd(),
                  stderr_pipe.write_end.fd(), argv.data(), environment.data());
    const int error = errno;
    const ssize_t ignored = write(exec_error.write_end.fd(), &error, sizeof(error));
    _exit(ignored >= 0 ? EX_UNAVAILABLE : EX_OSERR);
  }
  exec_error.write_end.Close();
  int error = 0;
  if (read(exec_error.read_end.fd(), &error, sizeof(error)) > 0) {
    waitpid(pid, nullptr, 0);
    throw LaunchError(EX_UNAVAILABLE, "cannot start " + spec.argv[0] + ": " + std::strerror(error));
  }
  for (const support::Descriptor* end : {&stdout_pipe.read_end, &stderr_pipe.read_end}) {
    if (end->is_open()) fcntl(end->fd(), F_SETFL, O_NONBLOCK);
  }
  ChildProcess child;
  child.pid = pid;
  child.stdout_pipe = std::move(stdout_pipe.read_end);
  child.stderr_pipe = std::move(stderr_pipe.read_end);
  return child;
}

namespace {

constexpr std::size_t kMaxBytes = 16777216;
constexpr std::chrono::microseconds kMoment{200};
constexpr int kStatusNotKnown = 127 << 8;  // that of a shell without such a command

ChildProcess Start(const std::vector<std::string>& argv, const Environment& environment) {
  ChildSpec spec;
  spec.argv = argv;
  spec.environment = ToStrings(environment);
  sigemptyset(&spec.signal_mask);
  return StartChild(spec);
}

// Adds what is there to `text`; closes the pipe at its end.
void ReadInto(support::Descriptor* pipe, std::string* text) {
  std::array<char, 16384> chunk;
  while (pipe->is_open()) {
    const ssize_t got = read(pipe->fd(), chunk.data(), chunk.size());
    if (got < 0) return;
    if (got == 0) pipe->Close();
    const std::size_t room = kMaxBytes - std::min(kMaxBytes, text->size());
    text->append(chunk.data(), std::min(static_cast<std::size_t>(got), room));
  }
}

}  // namespace

CommandOutput::CommandOutput(const std::vector<std::string>& argv, const Environment& environment)
    : child_(Start(argv, environment)) {}

CommandOutput::~CommandOutput() {
  if (HasEnded()) return;
  kill(-child_.pid, SIGKILL);
  waitpid(child_.pid, nullptr, 0);
}

bool CommandOutput::HasEnded() {
  ReadInto(&child_.stdout_pipe, &text_);
  ReadInto(&child_.stderr_pipe, &text_);
  if (child_.pid == 0) return true;
  const pid_t ended = waitpid(child_.pid, &status_, WNOHANG);
  if (ended < 0 && errno == ECHILD) status_ = kStatusNotKnown;
  if (ended != 0) child_.pid = 0;
  return child_.pid == 0;
}

bool CommandOutput::Wait(std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + limit;
  while (child_.stdout_pipe.is_open() || child_.stderr_pipe.is_open()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) break;
    // A closed pipe has the number -1, which poll ignores.
    std::array<pollfd, 2> ready = {
        {{child_.stdout_pipe.fd(), POLLIN, 0}, {child_.stderr_pipe.fd(), POLLIN, 0}}};
    poll(ready.data(), ready.size(), static_cast<int>(left.count()));
    ReadInto(&child_.stdout_pipe, &text_);
    ReadInto(&child_.stderr_pipe, &text_);
  }
  // The pipes are closed a moment before the command ends, or long before that.
  while (!HasEnded() && Clock::now() < deadline) std::this_thread::sleep_for(kMoment);
  if (child_.pid != 0) {
    is_over_limit_ = true;
    kill(-child_.pid, SIGKILL);
    waitpid(child_.pid, &status_, 0);
    child_.pid = 0;
  }
  return WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
}

bool CommandOutput::WasKilledByOthers() const { return !is_over_limit_ && WIFSIGNALED(status_); }

std::string LastLineOf(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace launcher
