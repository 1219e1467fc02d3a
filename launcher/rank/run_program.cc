// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/run_program.h"

#include <fcntl.h>
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
#include "launcher/rank/output_relay.h"
#include "launcher/rank/rank_end.h"

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

std::string FormatLastLines(int rank, const Tail& last_lines) {
  std::string text;
  for (const std::string& line : last_lines.lines()) text += FormatRankLine({rank, line});
  return text;
}

// A signal to the whole step may have ended the program before this process has seen it.
bool WasToldToStop(int status) {
  constexpr timespec kMoment = {0, 10'000'000};
  const bool may_be =
      WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT);
  for (int i = 0; i < 20 && may_be && was_told_to_stop == 0; ++i) nanosleep(&kMoment, nullptr);
  return was_told_to_stop != 0;
}

void ReportEnd(int rank, const std::string& host, pid_t pid, int status, const Tail& last_lines) {
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
  WriteAll(STDERR_FILENO, text);
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
  OutputRelay output(rank.log);
  std::array<int, 2> exec_error = {-1, -1};
  if (pipe2(exec_error.data(), O_CLOEXEC) != 0) throw CannotStart(argv[0], errno);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw CannotStart(argv[0], errno);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(128 + SIGKILL);
    output.ConnectChild();
    if (rank.is_of_mpirun) std::signal(kStopSignalOfMpirun, SIG_IGN);
    sigprocmask(SIG_SETMASK, &original, nullptr);
    execvp(argv[0], argv);
    const int error = errno;
    const ssize_t ignored = write(exec_error[1], &error, sizeof(error));
    _exit(ignored >= 0 ? EX_UNAVAILABLE : EX_OSERR);
  }
  child_pid = child;
  close(exec_error[1]);
  output.CloseChildEnds();
  int error = 0;
  ssize_t got = 0;
  while ((got = read(exec_error[0], &error, sizeof(error))) < 0 && errno == EINTR) {
  }
  const int status = output.WaitFor(child);
  if (got > 0) throw CannotStart(argv[0], error);
  ReportEnd(rank.rank, rank.host, child, status, output.last_lines());
  EndAs(status);
}

}  // namespace launcher
