// SPDX-License-Identifier: Apache-2.0
//
// ddlrun-rank, the shim, which ddlrun starts for each rank in front of the user's program.  It
// makes sure that the rank and its node are as planned, binds the rank, sets its environment,
// starts the program and reports how it ended.
//
//   ddlrun-rank [--rank R [--checked]] -- program arguments ...
//
// Where anything is not plainly as planned it becomes ddlrun-rank-check (launcher/rank), which says
// what is wrong, or plans this node anew and comes back with --checked.

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "launcher/protocol/launchers.h"
#include "launcher/protocol/local_rank_job.h"
#include "launcher/protocol/rank_event.h"
#include "launcher/protocol/rank_variables.h"
#include "launcher/shim/binding.h"
#include "launcher/shim/energy_meter.h"
#include "launcher/shim/own_environment.h"
#include "launcher/shim/rank_log.h"
#include "launcher/shim/run_program.h"
#include "launcher/shim/shared_memory.h"
#include "launcher/shim/start_problem.h"
#include "launcher/topology/fingerprint.h"
#include "launcher/topology/gpus_of_node.h"
#include "support/standard_streams.h"

namespace launcher {
namespace {

struct Arguments {
  const char* rank = nullptr;  // given by the local launcher and by ddlrun-rank-check
  bool is_checked = false;
  char** program = nullptr;  // argv of the program, ended by a null pointer
};

LocalRankJob job;

bool IsNumber(const char* text, int number) {
  char* end = nullptr;
  return *text >= '0' && *text <= '9' && strtol(text, &end, 10) == number && *end == '\0';
}

bool IsNumberOrUnset(const char* name, int number) {
  const char* value = getenv(name);
  return value == nullptr || IsNumber(value, number);
}

// Ends this process with `exit_code`, after a line in the form of ddlrun's own refusals.
[[noreturn]] __attribute__((format(printf, 2, 3))) void Reject(int exit_code, const char* format,
                                                               ...) {
  char line[1024];
  size_t length = static_cast<size_t>(
      snprintf(line, sizeof(line), "ddlrun-rank: [ERROR DDL-20-%d] ", exit_code));
  if (job.host[0] != '\0') {
    length += static_cast<size_t>(
        snprintf(line + length, sizeof(line) - length, "rank %d on %s: ", job.rank, job.host));
  }
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line + length, sizeof(line) - length - 1, format, arguments);
  va_end(arguments);
  length = strlen(line);
  line[length] = '\n';
  WriteAll(STDERR_FILENO, line, length + 1);
  RemoveSharedMemory(job.rank);
  LetLastLinesPass();
  _exit(exit_code);
}

Arguments ReadArguments(int argc, char** argv) {
  Arguments arguments;
  int next = 1;
  if (next + 1 < argc && Is(argv[next], "--rank")) {
    arguments.rank = argv[next + 1];
    next += 2;
    arguments.is_checked = next < argc && Is(argv[next], "--checked");
    if (arguments.is_checked) ++next;
  }
  if (next + 1 >= argc || !Is(argv[next], "--")) {
    Reject(EX_USAGE,
           "usage: ddlrun-rank [--rank R] -- program [arguments]; it is started by ddlrun, not by "
           "hand");
  }
  arguments.program = argv + next + 1;
  return arguments;
}

const LauncherTraits& OwnLauncher() { return TraitsOf(job.launcher); }

// Reads the job for the rank that `given` or the launcher says; false when neither says it, or the
// job is of another version of ddlrun, which ddlrun-rank-check tells.
bool ReadJob(const char* text, const char* given) {
  const char* words = SkipRankJobVersion(text);
  if (words == nullptr) return false;
  snprintf(job.launcher, sizeof(job.launcher), "%.*s", static_cast<int>(strcspn(words, " ")),
           words);
  const char* rank = given != nullptr ? given : getenv(OwnLauncher().rank_variables[0]);
  if (rank == nullptr) return false;
  char* end = nullptr;
  const long number = strtol(rank, &end, 10);
  return end != rank && *end == '\0' && number >= 0 && number <= INT_MAX &&
         ReadLocalRankJob(text, static_cast<int>(number), Get("SLURM_STEP_GPUS"), &job);
}

// Whether PMI says the same rank as SLURM_PROCID.
bool HasPlannedPmi() {
  if (Is(job.pmi, "none")) return true;
  return IsNumber(Get(Is(job.pmi, "pmi2") ? "PMI_RANK" : "PMIX_RANK"), job.rank);
}

// Whether one of the names of this node is that of the plan.  Where none is, ddlrun-rank-check
// knows whether that matters (HostOfRank).
bool IsOnPlannedHost() {
  const char* of_slurm = Get("SLURMD_NODENAME");
  if (*of_slurm != '\0') return Is(of_slurm, job.host);
  if (OwnLauncher().makes_step) return true;
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, sizeof(name) - 1);
  return strcasecmp(name, job.host) == 0;
}

bool IsWhoIsPlanned() {
  const LauncherTraits& launcher = OwnLauncher();
  return IsOnPlannedHost() && (!launcher.makes_step || HasPlannedPmi()) &&
         IsNumberOrUnset(launcher.world_size_variable, job.world_size) &&
         IsNumberOrUnset(launcher.local_rank_variable, job.local_rank) &&
         IsNumberOrUnset(launcher.local_world_size_variable, job.local_world_size);
}

bool HasPlannedGpus() {
  if (!job.check || job.gpus == 0) return true;
  const char* on_node = Get("SLURM_GPUS_ON_NODE");
  if (*on_node != '\0' && !IsNumber(on_node, job.gpus)) return false;
  constexpr const char* kLists[] = {"SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES"};
  for (const char* name : kLists) {
    const char* list = Get(name);
    if (*list != '\0' && CountGpuEntries(list) != job.gpus) return false;
  }
  const int devices = CountGpuDevices();
  return devices == 0 || devices >= job.gpus || AreGpuSlices(Get("CUDA_VISIBLE_DEVICES"));
}

bool IsNodeLikePlanned() {
  if (!job.bind || job.planned_for[0] == '\0') return true;
  if (job.has_other_gpus) return false;
  Fingerprint fingerprint;
  ReadFingerprint("", &fingerprint);
  return Is(fingerprint.text, job.planned_for);
}

bool IsAsPlanned(const char* text, const char* given) {
  if (!ReadJob(text, given)) return false;
  if (OwnLauncher().is_direct) return true;
  return (given != nullptr || IsWhoIsPlanned()) && HasPlannedGpus() && IsNodeLikePlanned();
}

// The path of a program beside this one: its own with `suffix`.
struct OwnPath {
  char text[PATH_MAX];
};
OwnPath OwnPathWith(const char* suffix) {
  OwnPath path;
  const size_t size = strlen(suffix) + 1;
  const ssize_t length = readlink("/proc/self/exe", path.text, sizeof(path.text) - size);
  memcpy(path.text + (length > 0 ? length : 0), suffix, size);
  return path;
}

[[noreturn]] void BecomeCheck(char** argv) {
  const OwnPath program = OwnPathWith("-check");
  execv(program.text, argv);
  Reject(EX_UNAVAILABLE, "cannot start %s: %s", program.text, strerror(errno));
}

// One for all ranks of the node, with the GPUs as the node has them: SetEnvironment may leave a
// rank its own alone.  ddlrun has one itself for ranks that it starts.
EnergyMeter StartMeterOfNode() {
  // Outside Slurm nobody says how many were granted.
  const int gpus = job.gpus > 0 ? job.gpus : job.used_gpus;
  if (OwnLauncher().is_direct || job.local_rank != 0 || gpus <= 0) return {};
  return StartEnergyMeter(OwnPathWith(kEnergySuffix).text, gpus, getenv("CUDA_VISIBLE_DEVICES"));
}

// Stands where ddlrun was started.  srun and mpirun start a rank there too, but where they cannot,
// in /tmp or at home, and the rank would read and write other files.
void EnterDirectory() {
  if (job.directory[0] == '\0') return;
  struct stat here = {};
  struct stat there = {};
  const bool is_known = stat(job.directory, &there) == 0;
  if (is_known && stat(".", &here) == 0 && here.st_dev == there.st_dev &&
      here.st_ino == there.st_ino) {
    return;
  }
  if (is_known && chdir(job.directory) == 0) {
    setenv("PWD", job.directory, 1);
    return;
  }
  Reject(EX_CONFIG,
         "this node has no working directory %.400s, where ddlrun was started: %s; start it in a "
         "directory that all nodes share",
         job.directory, strerror(errno));
}

void Bind() {
  if (!job.bind) return;
  Rejection rejection = {};
  if (HasOwnCpus(job)) rejection = BindCpus(job.cpus);
  if (rejection.text[0] == '\0' && job.numa_os_index >= 0) {
    rejection = PreferMemoryOf(job.numa_os_index);
  }
  if (rejection.text[0] != '\0') Reject(EX_CONFIG, "%s", rejection.text);
}

// Reports the step, by which ddlrun can send signals to the ranks.  The first rank of every node
// reports it, since a node may hang.  In a heterogeneous job only rank 0 does: the steps of all
// components have the same number, but each has a job number of its own, and ddlrun needs that of
// the first.
void EmitStepOnce() {
  const char* job_id = getenv("SLURM_JOB_ID");
  const char* step = getenv("SLURM_STEP_ID");
  const bool says = getenv("SLURM_HET_SIZE") == nullptr ? job.local_rank == 0 : job.rank == 0;
  if (!OwnLauncher().makes_step || !says || job_id == nullptr || step == nullptr) return;
  const RankEvent report = EmitStep(job.event_key, job_id, step);
  WriteAll(STDERR_FILENO, report.text, strlen(report.text));
}

// Gives the PMIx servers of the other nodes time to be ready, where ddlrun says that this version
// of Slurm needs it.  The servers connect to each other when a rank first speaks to PMIx.  While a
// server is starting its tasks it runs as the user for moments, in which it refuses other servers;
// a fence of the ranks would then wait for ever (doc/decisions/0014, 0015).
void LetOtherNodesStart() {
  if (!job.pause) return;
  const timespec pause = {0, 100'000'000};
  nanosleep(&pause, nullptr);
}

int OpenLog() {
  if (job.log_directory[0] == '\0') return -1;
  const RankLog log = OpenRankLog(job.log_directory, job.rank);
  if (log.fd < 0) Reject(EX_OSERR, "%s", log.problem);
  return log.fd;
}

[[noreturn]] void StartProgram(char** program, EnergyMeter energy) {
  const char* directories = getenv("PATH");
  if (directories == nullptr) directories = "/bin:/usr/bin";  // as execvp has it
  int error = 0;
  const LauncherTraits& launcher = OwnLauncher();
  for (char** word = program; !launcher.is_direct && *word != nullptr; ++word) {
    if (IsOfColons(*word)) ++*word;
  }
  program = WithWraps(job, program);
  if (program == nullptr) Reject(EX_OSERR, "no memory is left");
  if (launcher.is_direct) {
    error = BecomeProgram(program, directories);
  } else {
    RankProcess process;
    process.event_key = job.event_key;
    process.rank = job.rank;
    process.host = job.host;
    process.launcher = &launcher;
    process.has_peers = job.world_size > 1;
    process.grace_ms = job.grace_ms;
    process.path = directories;
    process.log = OpenLog();
    process.has_frames = job.frames;
    process.is_shown = job.is_shown;
    process.energy = energy;
    error = RunProgram(program, process);
  }
  char problem[800];
  DescribeStartProblem(program[0], directories, error, problem, sizeof(problem));
  Reject(EX_UNAVAILABLE, "cannot start '%.500s': %s", program[0], problem);
}

}  // namespace
}  // namespace launcher

int main(int argc, char** argv) {
  using namespace launcher;
  support::OpenStandardStreams();
  const Arguments arguments = ReadArguments(argc, argv);
  const char* text = JoinRankJob([](const char* name) -> const char* { return getenv(name); });
  if (arguments.is_checked) {
    if (!ReadJob(text, arguments.rank)) {
      Reject(EX_SOFTWARE, "%s is not what ddlrun-rank-check writes", kRankJobVariable);
    }
  } else if (!IsAsPlanned(text, arguments.rank)) {
    BecomeCheck(argv);
  }
  EnterDirectory();
  Bind();
  const EnergyMeter energy = StartMeterOfNode();
  SetEnvironment(job, CountUsableCpus(), arguments.program);
  EmitStepOnce();
  LetOtherNodesStart();
  StartProgram(arguments.program, energy);
}
