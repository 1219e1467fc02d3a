// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "launcher/error.h"
#include "launcher/exit_codes.h"
#include "launcher/rank/rank_end.h"
#include "launcher/rank/tail.h"

namespace launcher {
namespace {

volatile std::sig_atomic_t was_told_to_stop = 0;
volatile pid_t child_pid = 0;  // set while kStopSignalOfMpirun is blocked

LaunchError CannotStart(const char* program, int error) {
  return LaunchError(EX_UNAVAILABLE,
                     std::string("cannot start '") + program + "': " + std::strerror(error));
}

// The child sees these itself; this process must outlive it.
void StayThroughSignals() {
  std::signal(SIGTERM, [](int) { was_told_to_stop = 1; });
  std::signal(SIGINT, [](int) { was_told_to_stop = 1; });
  std::signal(kStopSignalOfMpirun, [](int) {
    was_told_to_stop = 1;
    kill(child_pid, SIGTERM);
  });
  // Not SIG_IGN, which the child would inherit.  SIGPIPE: nobody reads standard error any more.
  for (const int number : {SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGCHLD}) {
    std::signal(number, [](int) {});
  }
}

void WriteAll(const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = write(STDERR_FILENO, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody reads; the exit code still tells
    data += written;
    size -= static_cast<std::size_t>(written);
  }
}

// The lines of a stream that passes by in pieces.
struct LastLines {
  Tail tail;
  std::string unfinished;

  void Add(std::string_view text) {
    for (const char c : text) {
      if (c == '\n' || c == '\r') {
        tail.Add(unfinished);
        unfinished.clear();
      } else if (unfinished.size() < Tail::kLineBytes) {
        unfinished += c;
      }
    }
  }
};

std::string FormatLastLines(int rank, LastLines last_lines) {
  last_lines.tail.Add(last_lines.unfinished);
  std::string text;
  for (const std::string& line : last_lines.tail.lines()) text += FormatRankLine({rank, line});
  return text;
}

// Passes on what is in the pipe; false at its end.
bool PassOn(int pipe, LastLines* last_lines) {
  std::array<char, 16384> chunk;
  const ssize_t got = read(pipe, chunk.data(), chunk.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  const auto size = static_cast<std::size_t>(got);
  WriteAll(chunk.data(), size);
  last_lines->Add({chunk.data(), size});
  return got > 0;
}

// Passes the child's standard error on until the child has ended; what it has started may hold the
// pipe open for longer.  SIGCHLD and kStopSignalOfMpirun are blocked but while waiting.
int WaitForChild(pid_t child, int pipe, LastLines* last_lines) {
  fcntl(pipe, F_SETFL, O_NONBLOCK);
  sigset_t nothing;
  sigemptyset(&nothing);
  pollfd ready = {pipe, POLLIN, 0};
  int status = 0;
  while (waitpid(child, &status, WNOHANG) != child) {
    if (ppoll(&ready, 1, nullptr, &nothing) > 0 && !PassOn(pipe, last_lines)) ready.fd = -1;
  }
  while (ready.fd >= 0 && poll(&ready, 1, 0) > 0 && PassOn(pipe, last_lines)) {
  }
  return status;
}

// A signal to the whole step may have ended the program before this process has seen it.
bool WasToldToStop(int status) {
  constexpr timespec kMoment = {0, 10'000'000};
  const bool may_be =
      WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT);
  for (int i = 0; i < 20 && may_be && was_told_to_stop == 0; ++i) nanosleep(&kMoment, nullptr);
  return was_told_to_stop != 0;
}

void ReportEnd(int rank, const std::string& host, pid_t pid, int status,
               const LastLines& last_lines) {
  RankEnd end;
  end.rank = rank;
  end.host = host;
  end.pid = pid;
  end.exit_code = ExitCodeOfWaitStatus(status);
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const bool stopped_early = end.exit_code == EX_TEMPFAIL;
  if (status == 0 || (!stopped_early && WasToldToStop(status))) return;
  const std::string text =
      (stopped_early ? "" : FormatLastLines(rank, last_lines)) + FormatRankEnd(end);
  WriteAll(text.data(), text.size());
}

[[noreturn]] void EndAs(int status) {
  if (WIFSIGNALED(status)) {
    const rlimit no_second_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_second_core);
    std::signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  const int exit_code = ExitCodeOfWaitStatus(status);
  _exit(exit_code == EX_TEMPFAIL ? 0 : exit_code);
}

}  // namespace

void BecomeProgram(char* const* argv) {
  execvp(argv[0], argv);
  throw CannotStart(argv[0], errno);
}

void RunProgram(char* const* argv, const RankProcess& rank) {
  StayThroughSignals();
  sigset_t while_waiting;
  sigset_t original;
  sigemptyset(&while_waiting);
  sigaddset(&while_waiting, SIGCHLD);
  sigaddset(&while_waiting, kStopSignalOfMpirun);
  sigprocmask(SIG_BLOCK, &while_waiting, &original);
  std::array<int, 2> exec_error = {-1, -1};
  std::array<int, 2> output = {-1, -1};
  if (pipe2(exec_error.data(), O_CLOEXEC) != 0 || pipe2(output.data(), O_CLOEXEC) != 0) {
    throw CannotStart(argv[0], errno);
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw CannotStart(argv[0], errno);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(128 + SIGKILL);
    dup2(output[1], STDERR_FILENO);
    if (rank.is_of_mpirun) std::signal(kStopSignalOfMpirun, SIG_IGN);
    sigprocmask(SIG_SETMASK, &original, nullptr);
    execvp(argv[0], argv);
    const int error = errno;
    const ssize_t ignored = write(exec_error[1], &error, sizeof(error));
    _exit(ignored >= 0 ? EX_UNAVAILABLE : EX_OSERR);
  }
  child_pid = child;
  close(exec_error[1]);
  close(output[1]);
  int error = 0;
  ssize_t got = 0;
  while ((got = read(exec_error[0], &error, sizeof(error))) < 0 && errno == EINTR) {
  }
  LastLines last_lines;
  const int status = WaitForChild(child, output[0], &last_lines);
  if (got > 0) throw CannotStart(argv[0], error);
  ReportEnd(rank.rank, rank.host, child, status, last_lines);
  EndAs(status);
}

}  // namespace launcher
