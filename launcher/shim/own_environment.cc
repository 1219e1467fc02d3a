// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/own_environment.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/protocol/launchers.h"
#include "launcher/protocol/rank_variables.h"
#include "launcher/shim/shared_memory.h"
#include "launcher/topology/gpus_of_node.h"
#include "support/cpu_quota.h"

namespace launcher {
namespace {

// Whether the run directory is here: it is only on the node of ddlrun.
bool IsOwnDirectory(const char* path) {
  struct stat info = {};
  return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid();
}

const char* TextOf(const LocalRankJob& job, RankValue value) {
  static char digits[16];
  const auto number = [](int n) {
    snprintf(digits, sizeof(digits), "%d", n);
    return static_cast<const char*>(digits);
  };
  switch (value) {
    case RankValue::kRank:
      return number(job.rank);
    case RankValue::kWorldSize:
      return number(job.world_size);
    case RankValue::kLocalRank:
      return number(job.local_rank);
    case RankValue::kLocalWorldSize:
      return number(job.local_world_size);
    case RankValue::kNodeRank:
      return number(job.node);
    case RankValue::kNodeCount:
      return number(job.node_count);
    case RankValue::kMasterAddress:
      return job.master_address;
    case RankValue::kMasterPort:
      return job.master_port != 0 ? number(job.master_port) : "";
    case RankValue::kHost:
      return job.host;
    case RankValue::kLauncher:
      return job.launcher;
    case RankValue::kPmi:
      return job.pmi;
    case RankValue::kRunDirectory:
      return IsOwnDirectory(job.run_directory) ? job.run_directory : "";
    case RankValue::kRestartCount:
      return number(job.restart_count);
    case RankValue::kGpus:
      return number(job.gpus);
  }
  return "";
}

// With --gpu-visibility=rank, and with `auto` where the GPUs are slices, the rank sees its own GPU
// only: of several slices in CUDA_VISIBLE_DEVICES a process can use no more than the first.
void SetVisibleGpu(const LocalRankJob& job) {
  const char* visibility = Get(kGpuVisibilityVariable);
  const char* list = getenv("CUDA_VISIBLE_DEVICES");
  const bool is_of_rank =
      Is(visibility, "rank") || (Is(visibility, "") && list != nullptr && AreGpuSlices(list));
  if (!is_of_rank) return;
  GpuEntry entry = {};
  if (list != nullptr) {
    entry = GpuEntryAt(list, job.local_rank);
  } else if (job.gpu >= 0) {
    snprintf(entry.text, sizeof(entry.text), "%d", job.gpu);
  }
  setenv("CUDA_VISIBLE_DEVICES", entry.text, 1);
  setenv(kJaxDevicesVariable, "0", 0);
}

void SetHeartbeat(int rank) {
  const char* pattern = Get(kHeartbeatVariable);
  const char* mark = strstr(pattern, kRankMark);
  if (mark == nullptr) return;
  char path[PATH_MAX];
  snprintf(path, sizeof(path), "%.*s%d%s", static_cast<int>(mark - pattern), pattern, rank,
           mark + strlen(kRankMark));
  setenv(kHeartbeatVariable, path, 1);
}

void RestorePath(const LocalRankJob& job) {
  const char* path = getenv(kPathVariable);
  if (path == nullptr) return;
  if (TraitsOf(job.launcher).is_open_mpi) setenv("PATH", path, 1);
  unsetenv(kPathVariable);
}

void RestoreNodesOfJob() {
  const char* nodes = getenv(kNodesOfJobVariable);
  if (nodes == nullptr) return;
  setenv("SLURM_JOB_NODELIST", nodes, 1);
  setenv("SLURM_NODELIST", nodes, 1);
  unsetenv(kNodesOfJobVariable);
}

void SetUnlessSet(const char* name, int value) {
  char digits[16];
  snprintf(digits, sizeof(digits), "%d", value);
  setenv(name, digits, 0);
}

// torchrun --standalone is a world of its own on each node, and would wait for the others.
bool IsStandalone(char* const* program) {
  for (; *program != nullptr; ++program) {
    if (Is(*program, "--standalone")) return true;
  }
  return false;
}

void SetMeetingPoint(const LocalRankJob& job, char* const* program) {
  if (job.master_address[0] == '\0' || job.master_port == 0) return;
  char address[sizeof(job.master_address) + 16];
  snprintf(address, sizeof(address), "%s:%d", job.master_address, job.master_port);
  setenv(kJaxCoordinatorVariable, address, 0);
  const bool has_one_on_each_node = job.node_count > 1 && job.world_size == job.node_count;
  if (!has_one_on_each_node || IsStandalone(program) || getenv("PET_NNODES") != nullptr ||
      getenv("PET_RDZV_ENDPOINT") != nullptr) {
    return;
  }
  for (const RankVariable& variable : kTorchrunVariables) {
    setenv(variable.name, TextOf(job, variable.value), 0);
  }
}

// Frameworks and other programs of Slurm read the variables of the step.  srun lays it out by the
// TASKFILE (--distribution=arbitrary); these are as they would be in one that Slurm has laid out by
// --ntasks-per-node, and nodes are numbered as the plan numbers them.
void SetStepVariables(const LocalRankJob& job) {
  char digits[16];
  snprintf(digits, sizeof(digits), "%d", job.local_world_size);
  setenv("SLURM_NTASKS_PER_NODE", digits, 1);
  snprintf(digits, sizeof(digits), "%d", job.node);
  setenv("SLURM_NODEID", digits, 1);
  setenv("SLURM_DISTRIBUTION", "block", 1);
  unsetenv("SLURM_ARBITRARY_NODELIST");  // an srun of the rank would take it for its own
  unsetenv("SLURM_HOSTFILE");
}

}  // namespace

bool HasOwnCpus(const LocalRankJob& job) {
  return job.bind && !Is(job.cpus, "-") && strncmp(job.cpus, "- ", 2) != 0;
}

namespace {

// 0 where that is not known, or a rank has its node for itself.
int CpusOfUnboundRank(const LocalRankJob& job, int usable_cpus) {
  if (usable_cpus <= 0 || job.local_world_size <= 1) return 0;
  return usable_cpus > job.local_world_size ? usable_cpus / job.local_world_size : 1;
}

// Where Open MPI 4 and 5 make their segments of shared memory, unless the user says so.
void SetSharedMemory(const LocalRankJob& job) {
  constexpr const char* kVariables[] = {"OMPI_MCA_btl_vader_backing_directory",
                                        "OMPI_MCA_btl_sm_backing_directory"};
  for (const char* name : kVariables) {
    if (getenv(name) != nullptr) return;
  }
  const char* directory = MakeSharedMemoryDirectory(job.run_directory);
  if (*directory == '\0') return;
  for (const char* name : kVariables) setenv(name, directory, 1);
}

// Whether a container is started that does not have the /dev/shm of this node.
bool HasOtherSharedMemory(char* const* program) {
  const char* slash = strrchr(program[0], '/');
  const char* name = slash != nullptr ? slash + 1 : program[0];
  if (!Is(name, "apptainer") && !Is(name, "singularity")) return false;
  for (char* const* word = program + 1; *word != nullptr; ++word) {
    if (Is(*word, "--contain") || Is(*word, "-C") || Is(*word, "--containall")) return true;
    // Else it is one of a shell in the container.
    if (Is(*word, "-c") && (word == program + 2 || word[-1][0] == '-')) return true;
  }
  return false;
}

// For ddlctl why.  How much is recorded, if anything, is PyTorch's choice, or the user's.
void SetFlightRecorder(const LocalRankJob& job, char* const* program) {
  const char* pipe = getenv(kRecorderPipeVariable);
  const bool is_off = pipe != nullptr && *pipe == '\0';
  bool has_dump = false;
  for (const char* name : kRecorderDumpVariables) has_dump = has_dump || getenv(name) != nullptr;
  if (is_off || (pipe != nullptr && has_dump) || HasOtherSharedMemory(program)) return;
  const char* directory = MakeRecorderDirectory(job.run_directory, job.rank);
  if (*directory == '\0') return;
  setenv(kRecorderPipeVariable, directory, 0);
  if (has_dump) return;
  // What PyTorch writes at a timeout goes there, too.
  char kept[sizeof(job.log_directory) + sizeof(kRecorderName)];
  snprintf(kept, sizeof(kept), "%s/%s", job.log_directory, kRecorderName);
  setenv(kRecorderDumpVariables[0], job.log_directory[0] != '\0' ? kept : directory, 1);
}

}  // namespace

void SetEnvironment(const LocalRankJob& job, int usable_cpus, char* const* program) {
  const LauncherTraits& launcher = TraitsOf(job.launcher);
  // The daemon on this node may have been started by srun.  Its variables say who the daemon is,
  // not who this rank is.
  if (!launcher.makes_step) {
    for (const char* name : kIdentityNames) unsetenv(name);
  }
  if (launcher.has_daemons) {
    for (const char* name : kStepNames) unsetenv(name);
  }
  for (const RankVariable& variable : kRankVariables) {
    const char* text = TextOf(job, variable.value);
    if (*text != '\0') setenv(variable.name, text, 1);
  }
  if (launcher.makes_step) SetStepVariables(job);
  if (Is(job.pmi, "pmix") || Is(job.pmi, "pmi2")) {
    for (const RankVariable& variable : kOpenMpiVariables) {
      setenv(variable.name, TextOf(job, variable.value), 1);
    }
  }
  // ddlrun has taken it away from srun and mpirun (launch/child_environment.h).
  if (job.cpus_per_rank > 0 && getenv("SLURM_JOB_ID") != nullptr) {
    SetUnlessSet("SLURM_CPUS_PER_TASK", job.cpus_per_rank);
  }
  // CUDA then numbers the GPUs as the plan, nvidia-smi and Slurm do.
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  SetMeetingPoint(job, program);
  SetVisibleGpu(job);
  if (!launcher.is_direct) SetSharedMemory(job);
  SetFlightRecorder(job, program);
  SetHeartbeat(job.rank);
  RestorePath(job);
  RestoreNodesOfJob();
  // One thread per core of the rank; hardware threads share the units that training needs.  Ranks
  // that are not bound have an equal part each: with a thread for each CPU of the node in every
  // rank, the threads of OpenMP, which wait actively, would keep each other from working.
  const int cores = job.cores > 0 ? job.cores : CpusOfUnboundRank(job, usable_cpus);
  if (cores > 0 && getenv("OMP_NUM_THREADS") == nullptr) {
    const int threads = support::ThreadsWithinQuota("", cores, job.local_world_size);
    SetUnlessSet("OMP_NUM_THREADS", threads);
    SetUnlessSet(kThreadsVariable, threads);
  }
  // A rank of Open MPI keeps its CPU busy while it waits.  Where ranks share CPUs it would keep the
  // others from working.
  if (!HasOwnCpus(job) && job.local_world_size > usable_cpus && usable_cpus > 0) {
    SetUnlessSet("OMPI_MCA_mpi_yield_when_idle", 1);
  }
  // Else what Python prints into a pipe comes late, or never.  At a terminal, which mpirun makes
  // for the output of each rank, Python writes whole lines at once; unbuffered it would write them
  // in pieces, which mpirun mixes with those of other ranks.
  const bool is_at_terminal =
      isatty(STDOUT_FILENO) == 1 && job.log_directory[0] == '\0' && !job.frames && job.is_shown;
  if (!is_at_terminal) SetUnlessSet("PYTHONUNBUFFERED", 1);
  for (int i = 0; i < kMaxRankJobChunks; ++i) unsetenv(NameOfChunk(i).name);
}

}  // namespace launcher
