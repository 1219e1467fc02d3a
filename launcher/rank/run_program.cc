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

#include "launcher/error.h"
#include "launcher/exit_codes.h"
#include "launcher/rank/rank_end.h"

namespace launcher {
namespace {

volatile std::sig_atomic_t was_told_to_stop = 0;

LaunchError CannotStart(const char* program, int error) {
  return LaunchError(EX_UNAVAILABLE,
                     std::string("cannot start '") + program + "': " + std::strerror(error));
}

// The child sees these itself; this process must outlive it.
void StayThroughSignals() {
  std::signal(SIGTERM, [](int) { was_told_to_stop = 1; });
  std::signal(SIGINT, [](int) { was_told_to_stop = 1; });
  for (const int number : {SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    std::signal(number, [](int) {});  // not SIG_IGN, which the child would inherit
  }
}

[[noreturn]] void EndAs(int status) {
  if (WIFSIGNALED(status)) {
    const rlimit no_second_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_second_core);
    std::signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  _exit(ExitCodeOfWaitStatus(status));
}

}  // namespace

void BecomeProgram(char* const* argv) {
  execvp(argv[0], argv);
  throw CannotStart(argv[0], errno);
}

void RunProgram(char* const* argv, int rank, const std::string& host) {
  StayThroughSignals();
  std::array<int, 2> exec_error = {-1, -1};
  if (pipe2(exec_error.data(), O_CLOEXEC) != 0) throw CannotStart(argv[0], errno);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw CannotStart(argv[0], errno);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(128 + SIGKILL);
    execvp(argv[0], argv);
    const int error = errno;
    const ssize_t ignored = write(exec_error[1], &error, sizeof(error));
    _exit(ignored >= 0 ? EX_UNAVAILABLE : EX_OSERR);
  }
  close(exec_error[1]);
  int error = 0;
  ssize_t got = 0;
  while ((got = read(exec_error[0], &error, sizeof(error))) < 0 && errno == EINTR) {
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (got > 0) throw CannotStart(argv[0], error);
  if (status != 0 && was_told_to_stop == 0) {
    RankEnd end;
    end.rank = rank;
    end.host = host;
    end.pid = child;
    end.exit_code = ExitCodeOfWaitStatus(status);
    end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const std::string line = FormatRankEnd(end);
    const ssize_t ignored = write(STDERR_FILENO, line.data(), line.size());
    static_cast<void>(ignored);  // nobody reads; the exit code still tells
  }
  EndAs(status);
}

}  // namespace launcher
