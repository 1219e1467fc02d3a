// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "launcher/protocol/colons.h"
#include "launcher/protocol/rank_report.h"
#include "launcher/shim/output_relay.h"
#include "launcher/shim/program_file.h"
#include "launcher/shim/stopped.h"

namespace launcher {
namespace {

// How long a rank that was told to stop may be stopped, in seconds.
constexpr double kGraceOfStopped = 3;

volatile sig_atomic_t was_told_to_stop = 0;
volatile pid_t child_pid = 0;  // set before kStopSignalOfMpirun can arrive

// A program that is stopped sees the order only when it goes on.
void ExpectEnd() {
  was_told_to_stop = 1;
  kill(0, SIGCONT);
}

// These signals reach the program as well.  This process must go on until the program has ended.
void StayThroughSignals() {
  signal(SIGTERM, [](int) { ExpectEnd(); });
  signal(SIGINT, [](int) { ExpectEnd(); });
  signal(kStopSignalOfMpirun, [](int) {
    kill(child_pid, SIGTERM);
    ExpectEnd();
  });
  // A handler that does nothing, since the child would inherit SIG_IGN.  SIGPIPE comes where nobody
  // reads standard error any more.  A program that asks at a terminal, which srun --pty may give
  // it, has its whole process group stopped: this process must go on to say so.
  constexpr int kOthers[] = {SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE,
                             SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU};
  for (const int number : kOthers) signal(number, [](int) {});
}

void Write(const Report& report) { WriteAll(STDERR_FILENO, report.text, strlen(report.text)); }

// A signal to the whole step may have ended the program before this process has seen it.
bool WasToldToStop(int status) {
  constexpr timespec kMoment = {0, 10'000'000};
  const bool may_be =
      WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT);
  for (int i = 0; i < 20 && may_be && was_told_to_stop == 0; ++i) nanosleep(&kMoment, nullptr);
  return was_told_to_stop != 0;
}

bool StoppedEarly(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == EX_TEMPFAIL; }

void ReportEnd(const RankProcess& rank, pid_t pid, int status, const StreamTail& last_lines) {
  timespec when = {};
  clock_gettime(CLOCK_REALTIME, &when);
  if (status == 0) Write(ReportRankSuccess(rank.report_key, rank.rank));
  if (status == 0 || (!StoppedEarly(status) && WasToldToStop(status))) return;
  for (int i = 0; i < last_lines.size() && !StoppedEarly(status); ++i) {
    Write(ReportRankLine(rank.report_key, rank.rank, last_lines.line(i)));
  }
  Write(ReportRankEnd(rank.report_key, rank.rank, rank.host, pid, status, when));
  LetLastLinesPass();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    Write(ReportKilledAlone(rank.report_key, rank.rank));
  }
}

struct Watch {
  const RankProcess* rank;
  pid_t program;
  pid_t daemon;  // the parent of this process; 0: it does not matter
  StoppedWatch stopped;
};

// Ends a program whose daemon is no more, and looks whether it is stopped.
void LookAtProgram(void* context) {
  auto* const watch = static_cast<Watch*>(context);
  if (watch->daemon > 0 && getppid() != watch->daemon) kill(watch->program, SIGKILL);
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const pid_t stopped = FindStopped(watch->program);
  const StoppedWatch::Step step = watch->stopped.Look(stopped, static_cast<double>(now.tv_sec),
                                                      was_told_to_stop != 0, kGraceOfStopped);
  if (step == StoppedWatch::Step::kKill) kill(stopped, SIGKILL);
  if (step == StoppedWatch::Step::kSay) {
    const RankProcess& rank = *watch->rank;
    Write(ReportRankStopped(rank.report_key, rank.rank, rank.host, stopped));
  }
}

[[noreturn]] void EndAs(int status) {
  if (WIFSIGNALED(status)) {
    const rlimit no_second_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_second_core);
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
  }
  _exit(StoppedEarly(status) ? 0 : WEXITSTATUS(status));
}

// Has the shell run a script without an interpreter line, as execvp does it in glibc, but not in
// musl.  What is no text for a shell is not given to it: it would run what looks like a command.
void BecomeScript(char* const* argv, char* path) {
  if (!IsForShell(path)) return;
  int count = 0;
  while (argv[count] != nullptr) ++count;
  const auto words = static_cast<char**>(calloc(static_cast<size_t>(count) + 2, sizeof(char*)));
  if (words == nullptr) return;
  char shell[] = "/bin/sh";
  words[0] = shell;
  memcpy(words + 1, argv, static_cast<size_t>(count) * sizeof(char*));
  words[1] = path;
  execv(shell, words);
  free(words);
}

}  // namespace

int BecomeProgram(char* const* argv, const char* folders) {
  char path[PATH_MAX];
  if (*FindProgramFile(argv[0], folders, path, sizeof(path)) == '\0') return ENOENT;
  const ProgramFile file = ReadProgramFile(path);
  if (IsLibrary(file)) return ENOEXEC;
  if (LacksProgramOfEnv(file, folders)) return ENOENT;
  execv(path, argv);
  const int error = errno;
  if (error == ENOEXEC) BecomeScript(argv, path);
  return error;
}

int RunProgram(char** argv, const RankProcess& rank) {
  for (char** word = argv; *word != nullptr; ++word) {
    if (IsOfColons(*word)) ++*word;
  }
  StayThroughSignals();
  sigset_t while_waiting;
  sigset_t original;
  sigemptyset(&while_waiting);
  sigaddset(&while_waiting, SIGCHLD);
  sigaddset(&while_waiting, kStopSignalOfMpirun);
  sigprocmask(SIG_BLOCK, &while_waiting, &original);
  static OutputRelay output;
  int exec_error[2] = {-1, -1};
  if (!output.Open(rank.log, rank.report_key) || pipe2(exec_error, O_CLOEXEC) != 0) return errno;
  const pid_t daemon = getppid();
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(128 + SIGKILL);
    output.ConnectChild();
    if (rank.is_of_mpirun) signal(kStopSignalOfMpirun, SIG_IGN);
    sigprocmask(SIG_SETMASK, &original, nullptr);
    const int error = BecomeProgram(argv, rank.path);
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
  if (got == 0) Write(ReportRankStart(rank.report_key, rank.rank));
  // The daemons of Open MPI 5.0.7 may end and leave their ranks alive.
  Watch watch = {&rank, child, rank.is_of_mpirun ? daemon : 0, {}};
  const int status = output.WaitFor(child, LookAtProgram, &watch);
  if (got > 0) return error;
  ReportEnd(rank, child, status, output.last_lines());
  EndAs(status);
}

}  // namespace launcher
