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

#include "launcher/protocol/attachment.h"
#include "launcher/protocol/launchers.h"
#include "launcher/protocol/rank_event.h"
#include "launcher/shim/leftovers.h"
#include "launcher/shim/output_relay.h"
#include "launcher/shim/program_file.h"
#include "launcher/shim/shared_memory.h"
#include "launcher/shim/stopped_rank_monitor.h"
#include "support/memory_kills.h"

namespace launcher {
namespace {

// How long a rank that was told to stop may be stopped, in seconds.
constexpr double kGraceOfStopped = 3;

// How long a shim stays, in milliseconds: without kPeerFailedSignal, and under daemons with it
// beyond the grace.
constexpr int kStayWithStep = 300;
constexpr int kStayWithDaemons = 1500;
constexpr int kStayLonger = 3000;

volatile sig_atomic_t was_stop_requested = 0;
volatile sig_atomic_t peer_failures = 0;      // how often that was told, at most 2
volatile pid_t child_pid = 0;                 // set before a signal for it can arrive
volatile pid_t daemon_pid = 0;                // the parent of this process; 0: it is no daemon
volatile bool daemon_tells_failures = false;  // by SIGTERM

// A program that is stopped sees the order only when it goes on.
void ExpectEnd() {
  was_stop_requested = 1;
  kill(0, SIGCONT);
}

void HandlePeerFailure(int) {
  if (peer_failures < 2) peer_failures = peer_failures + 1;
  if (peer_failures > 1) return;
  was_stop_requested = 1;
  kill(0, SIGTERM);
  kill(0, SIGCONT);
}

// A daemon kills its ranks soon after its SIGTERM, or that stands for kPeerFailedSignal.
void HandleSigterm(int, siginfo_t* info, void*) {
  const bool is_of_daemon = daemon_pid > 0 && info->si_pid == daemon_pid;
  if (is_of_daemon && daemon_tells_failures) {
    kill(0, kPeerFailedSignal);
  } else if (is_of_daemon && peer_failures == 0) {
    peer_failures = 1;
    kill(0, kPeerFailedSignal);
  }
  ExpectEnd();
}

// These signals reach the program as well.  This process must go on until the program has ended.
void StayThroughSignals(const LauncherTraits& launcher) {
  struct sigaction terminate = {};
  daemon_tells_failures = launcher.failure_signal == SIGTERM;
  terminate.sa_sigaction = HandleSigterm;
  terminate.sa_flags = SA_RESTART | SA_SIGINFO;
  sigaction(SIGTERM, &terminate, nullptr);
  signal(kPeerFailedSignal, HandlePeerFailure);
  signal(SIGINT, [](int) { ExpectEnd(); });
  // A handler that does nothing, since the child would inherit SIG_IGN.  SIGPIPE comes where nobody
  // reads standard error any more.  A program that asks at a terminal, which srun --pty may give
  // it, has its whole process group stopped: this process must go on to say so.
  constexpr int kOthers[] = {SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE,
                             SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU, SIGALRM};
  for (const int number : kOthers) signal(number, [](int) {});
  if (launcher.stop_signal != 0) {
    signal(launcher.stop_signal, [](int) {
      kill(child_pid, SIGTERM);
      ExpectEnd();
    });
  }
}

void Write(const RankEvent& report) { WriteAll(STDERR_FILENO, report.text, strlen(report.text)); }

// A signal to the whole step may have ended the program before this process has seen it.
bool WasStopRequested(int status) {
  constexpr timespec kMoment = {0, 10'000'000};
  sigset_t nothing;
  sigemptyset(&nothing);
  const bool may_be =
      WIFSIGNALED(status) && (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT);
  for (int i = 0; i < 20 && may_be && was_stop_requested == 0; ++i)
    ppoll(nullptr, 0, &kMoment, &nothing);
  return was_stop_requested != 0;
}

bool StoppedEarly(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == EX_TEMPFAIL; }

// True where this rank may be the cause of the end of the job, or has stopped early.
bool ReportEnd(const RankProcess& rank, pid_t pid, int status, const StreamTail& last_lines,
               const support::MemoryKills& kills_before) {
  timespec when = {};
  clock_gettime(CLOCK_REALTIME, &when);
  if (status == 0 || (!StoppedEarly(status) && WasStopRequested(status))) return false;
  for (int i = 0; i < last_lines.size() && !StoppedEarly(status); ++i) {
    Write(EmitRankLine(rank.event_key, rank.rank, last_lines.line(i)));
  }
  char memory[200];
  support::DescribeMemoryKills(kills_before, support::ReadMemoryKills(""), memory, sizeof(memory));
  if (*memory != '\0') Write(EmitRankLine(rank.event_key, rank.rank, memory));
  Write(EmitRankExit(rank.event_key, rank.rank, rank.host, pid, status, when));
  return true;
}

int ExitCodeOf(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void EndRest(const RankProcess& rank, int status, OutputRelay* output) {
  EnergyMeter meter = rank.energy;
  const long long millijoules = StopEnergyMeter(&meter);
  if (millijoules > 0) Write(EmitEnergy(rank.event_key, rank.rank, millijoules));
  const Survivors left = EndLeftovers({});
  output->PassOnRest();
  output->EndLines();
  for (int i = 0; i < left.count && i < kMaxSurvivors; ++i) {
    const Survivor& process = left.first[i];
    Write(EmitLeftProcess(rank.event_key, rank.rank, rank.host, process.pid, process.name));
  }
  // What came before this report must not be taken for an answer to it.
  constexpr timespec kNoTime = {0, 0};
  sigset_t nothing;
  sigemptyset(&nothing);
  ppoll(nullptr, 0, &kNoTime, &nothing);
  Write(status == 0 ? EmitRankSuccess(rank.event_key, rank.rank)
                    : EmitRankGone(rank.event_key, rank.rank, ExitCodeOf(status)));
}

long Milliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

// Until the other ranks know of the failure; under a daemon until they are gone, or the daemon is.
void Stay(const RankProcess& rank) {
  sigset_t nothing;
  sigemptyset(&nothing);
  const long start = Milliseconds();
  const bool has_daemon = rank.launcher->has_daemons;
  const int unresponsive = has_daemon ? kStayWithDaemons : kStayWithStep;
  while (peer_failures < (has_daemon ? 2 : 1)) {
    const long end = start + (peer_failures == 0 ? unresponsive : rank.grace_ms + kStayLonger);
    if (Milliseconds() >= end || (daemon_pid > 0 && getppid() != daemon_pid)) return;
    constexpr timespec kLook = {0, 100'000'000};
    ppoll(nullptr, 0, &kLook, &nothing);
  }
}

// When a rank ends badly, the daemons of Open MPI 4 and 5 send SIGCONT, SIGTERM and SIGKILL to
// those that they still take for alive, and sleep for a second before each of the latter two;
// SIGCHLD ends such a sleep.  All shims end now, but a daemon may see the end of one before that of
// another.  So a process that outlives this one sends SIGCHLD, until the daemon is gone.
void KeepDaemonAwake() {
  constexpr timespec kStep = {0, 5'000'000};
  constexpr int kSteps = 100;
  if (fork() != 0) return;
  setsid();
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) close(stream);
  for (int i = 0; i < kSteps && kill(daemon_pid, SIGCHLD) == 0; ++i) nanosleep(&kStep, nullptr);
  _exit(0);
}

struct Watch {
  const RankProcess* rank;
  pid_t program;
  StoppedRankMonitor stopped;
  bool is_attached;  // somebody is
  long looked_at;    // the second of CLOCK_MONOTONIC
  long kill_at;      // in its milliseconds; 0: no peer has failed so far
};

// Ends a program whose daemon is no more, and one whose peer has failed when its grace is over; and
// looks whether it is stopped.
int LookAtProgram(void* context) {
  constexpr int kSecond = 1000;
  auto* const watch = static_cast<Watch*>(context);
  const long now = Milliseconds();
  if (peer_failures > 0 && watch->kill_at == 0) watch->kill_at = now + watch->rank->grace_ms;
  const long left = watch->kill_at != 0 ? watch->kill_at - now : kSecond;
  if (left <= 0) kill(watch->program, SIGKILL);
  const int limit = left > 0 && left < kSecond ? static_cast<int>(left) : kSecond;
  if (now / kSecond == watch->looked_at) return limit;
  watch->looked_at = now / kSecond;
  if (daemon_pid > 0 && getppid() != daemon_pid) kill(watch->program, SIGKILL);
  const bool was_attached = watch->is_attached;
  watch->is_attached = IsAttached(watch->program);
  if (watch->is_attached != was_attached) {
    Write(EmitAttachment(watch->rank->event_key, watch->rank->rank, watch->is_attached));
  }
  // A debugger stops it.
  const bool may_be_stopped = watch->is_attached && was_stop_requested == 0;
  const pid_t stopped = may_be_stopped ? 0 : FindStopped(watch->program);
  const StoppedRankMonitor::Step step = watch->stopped.Look(
      stopped, static_cast<double>(watch->looked_at), was_stop_requested != 0, kGraceOfStopped);
  if (step == StoppedRankMonitor::Step::kKill) kill(stopped, SIGKILL);
  if (step == StoppedRankMonitor::Step::kPrint) {
    const RankProcess& rank = *watch->rank;
    Write(EmitRankStopped(rank.event_key, rank.rank, rank.host, stopped));
  }
  return limit;
}

[[noreturn]] void EndAs(int status, const LauncherTraits& launcher) {
  if (WIFSIGNALED(status) && !launcher.explains_signals) {
    const rlimit no_second_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_second_core);
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
  }
  _exit(StoppedEarly(status) ? 0 : ExitCodeOf(status));
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

int BecomeProgram(char* const* argv, const char* directories) {
  char path[PATH_MAX];
  if (*FindProgramFile(argv[0], directories, path, sizeof(path)) == '\0') return ENOENT;
  const ProgramFile file = ReadProgramFile(path);
  if (IsLibrary(file)) return ENOEXEC;
  if (LacksProgramOfEnv(file, directories)) return ENOENT;
  execv(path, argv);
  const int error = errno;
  if (error == ENOEXEC) BecomeScript(argv, path);
  return error;
}

int RunProgram(char** argv, const RankProcess& rank) {
  AdoptOrphans();
  // The daemons of Open MPI 5.0.7 may end and leave their ranks alive.
  if (rank.launcher->has_daemons) daemon_pid = getppid();
  StayThroughSignals(*rank.launcher);
  sigset_t while_waiting;
  sigset_t original;
  sigemptyset(&while_waiting);
  sigaddset(&while_waiting, SIGCHLD);
  sigaddset(&while_waiting, kPeerFailedSignal);
  if (rank.launcher->stop_signal != 0) sigaddset(&while_waiting, rank.launcher->stop_signal);
  sigprocmask(SIG_BLOCK, &while_waiting, &original);
  static OutputRelay output;
  int exec_error[2] = {-1, -1};
  // A terminal gets whole lines from the program itself: mpirun makes one for each rank.
  const bool passes_on_output = rank.launcher->has_daemons && isatty(STDOUT_FILENO) == 0;
  const RelayOptions relay = {rank.log,        rank.event_key, rank.rank,
                              rank.has_frames, rank.is_shown,  passes_on_output};
  if (!output.Open(relay) || pipe2(exec_error, O_CLOEXEC) != 0) return errno;
  const support::MemoryKills kills_before = support::ReadMemoryKills("");
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(128 + SIGKILL);
    output.ConnectChild();
    if (rank.launcher->leaves_input_open && rank.rank > 0) {
      const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (nothing > 0) dup2(nothing, STDIN_FILENO);
    }
    if (rank.launcher->stop_signal != 0) signal(rank.launcher->stop_signal, SIG_IGN);
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
  if (got == 0) Write(EmitRankStart(rank.event_key, rank.rank));
  Watch watch = {&rank, child, {}, false, -1, 0};
  const int status = output.WaitFor(child, LookAtProgram, &watch);
  if (got > 0) return error;
  const bool is_cause = ReportEnd(rank, child, status, output.last_lines(), kills_before);
  const bool has_failed = is_cause && !StoppedEarly(status);
  EndRest(rank, status, &output);
  RemoveSharedMemory(rank.rank);
  // Before the daemons and srun are told to end, which may lose it.
  if (has_failed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    LetLastLinesPass();
    Write(EmitKilledAlone(rank.event_key, rank.rank));
  }
  const bool stays_for_others = peer_failures > 0 && rank.launcher->has_daemons;
  if (rank.has_peers && (has_failed || stays_for_others)) Stay(rank);
  if (peer_failures > 1 && rank.launcher->has_sleeping_daemons) KeepDaemonAwake();
  if (is_cause && peer_failures < 2) LetLastLinesPass();
  if (!is_cause && peer_failures > 0) _exit(0);
  EndAs(status, *rank.launcher);
}

}  // namespace launcher
