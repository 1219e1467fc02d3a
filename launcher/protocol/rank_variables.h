// SPDX-License-Identifier: Apache-2.0
//
// The names of the variables that every rank is given (rank_environment.h), and of those that say
// who an enclosing rank is.  The shim needs them, so this does without the C++ library.

#pragma once

namespace launcher {

enum class RankValue {
  kRank,
  kWorldSize,
  kLocalRank,
  kLocalWorldSize,
  kNodeRank,
  kNodeCount,
  kMasterAddress,
  kMasterPort,
  kHost,
  kLauncher,
  kPmi,
  kRunDirectory,
  kRestartCount,
  kGpus,
};

struct RankVariable {
  const char* name;
  RankValue value;
};

inline constexpr RankVariable kRankVariables[] = {
    {"RANK", RankValue::kRank},
    {"WORLD_SIZE", RankValue::kWorldSize},
    {"LOCAL_RANK", RankValue::kLocalRank},
    {"LOCAL_WORLD_SIZE", RankValue::kLocalWorldSize},
    {"GROUP_RANK", RankValue::kNodeRank},
    {"NODE_RANK", RankValue::kNodeRank},
    {"MASTER_ADDR", RankValue::kMasterAddress},
    {"MASTER_PORT", RankValue::kMasterPort},
    {"DDLRUN_MASTER_ADDR", RankValue::kMasterAddress},
    {"DDLRUN_MASTER_PORT", RankValue::kMasterPort},
    {"HOROVOD_RANK", RankValue::kRank},
    {"HOROVOD_SIZE", RankValue::kWorldSize},
    {"HOROVOD_LOCAL_RANK", RankValue::kLocalRank},
    {"HOROVOD_LOCAL_SIZE", RankValue::kLocalWorldSize},
    {"HOROVOD_CROSS_RANK", RankValue::kNodeRank},
    {"HOROVOD_CROSS_SIZE", RankValue::kNodeCount},
    {"HOROVOD_HOSTNAME", RankValue::kHost},
    {"DDLRUN_HOST", RankValue::kHost},
    {"DDLRUN_NODE_RANK", RankValue::kNodeRank},
    {"DDLRUN_NODE_COUNT", RankValue::kNodeCount},
    {"DDLRUN_LAUNCHER", RankValue::kLauncher},
    {"DDLRUN_SPAWNER", RankValue::kLauncher},  // its name up to version 0.2
    {"DDLRUN_PMI", RankValue::kPmi},
    {"DDLRUN_RUN_DIR", RankValue::kRunDirectory},
    {"DDLRUN_RESTART_COUNT", RankValue::kRestartCount},
    {"DDLRUN_GPUS", RankValue::kGpus},
};

// The options of torchrun that have these names without PET_.  Without --nnodes it is a world of
// its own on each node, and reads no MASTER_ADDR.  For jobs with one rank on each of several nodes,
// and only where the user has not set PET_NNODES or PET_RDZV_ENDPOINT.
inline constexpr RankVariable kTorchrunVariables[] = {
    {"PET_NNODES", RankValue::kNodeCount},
    {"PET_NODE_RANK", RankValue::kNodeRank},
    {"PET_MASTER_ADDR", RankValue::kMasterAddress},
    {"PET_MASTER_PORT", RankValue::kMasterPort},
};

// MASTER_ADDR:MASTER_PORT, unless the user has set it.  jax.distributed.initialize() reads it
// before it looks at Slurm's or Open MPI's variables, by which it would wait at the first node of
// the step or at the node of mpirun, where rank 0 need not be.
inline constexpr char kJaxCoordinatorVariable[] = "JAX_COORDINATOR_ADDRESS";
// The GPUs of the rank for jax.distributed.initialize(), which otherwise takes the one with the
// number of the rank on its node: there is no such one where a rank sees its own alone.
inline constexpr char kJaxDevicesVariable[] = "JAX_LOCAL_DEVICE_IDS";

// What the shim has set OMP_NUM_THREADS to, where the user has not.  Like DDLRUN_MASTER_ADDR and
// DDLRUN_MASTER_PORT a copy, by which a ddlrun that a rank starts knows its own value from a wish
// of the user (base/environment.h).
inline constexpr char kThreadsVariable[] = "DDLRUN_OMP_NUM_THREADS";

// "all", "rank", or not set for "auto": which GPUs of its node a rank sees (--gpu-visibility).
inline constexpr char kGpuVisibilityVariable[] = "DDLRUN_GPU_VISIBILITY";

// The file that the rank must touch as it makes progress (--heartbeat).  The shim puts the number
// of the rank instead of kRankMark.
inline constexpr char kHeartbeatVariable[] = "DDLRUN_HEARTBEAT";

// Where PyTorch's flight recorder (NCCL) makes a FIFO for each of its ranks, "3.pipe" behind this,
// and where it writes what it has recorded when a byte comes through it, "3" behind one of those:
// the second name is that of PyTorch up to 2.7, and later ones warn of it.
inline constexpr char kRecorderPipeVariable[] = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE";
inline constexpr const char* kRecorderDumpVariables[] = {"TORCH_FR_DUMP_TEMP_FILE",
                                                         "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"};
// What all values that ddlrun gives these have, and no other.
inline constexpr char kRecorderName[] = "ddlrun-recorder.";

// PATH as ddlrun has it, or as -x PATH=... sets it, for the ranks of mpirun alone.  Open MPI puts
// its own directory in front of PATH, and in front of the virtual environment that is active in the
// script where that directory is /usr/bin.  The shim takes it away again.
inline constexpr char kPathVariable[] = "DDLRUN_PATH";
inline constexpr char kRankMark[] = "%r";

// SLURM_JOB_NODELIST as it was, for the ranks of an srun whose PMIx servers are given another one
// (launch/srun_launcher.cc).  The shim takes it away again.
inline constexpr char kNodesOfJobVariable[] = "DDLRUN_JOB_NODELIST";

// The variables of Open MPI's mpirun, which scripts read that were written for it.  Ranks that srun
// starts with a PMI get them from the shim, since MPI_Init finds the same numbers.  Ranks without a
// PMI do not: there MPI_Init makes every rank a world of its own (doc/decisions/0026).
inline constexpr RankVariable kOpenMpiVariables[] = {
    {"OMPI_COMM_WORLD_RANK", RankValue::kRank},
    {"OMPI_COMM_WORLD_SIZE", RankValue::kWorldSize},
    {"OMPI_COMM_WORLD_LOCAL_RANK", RankValue::kLocalRank},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", RankValue::kLocalWorldSize},
};

// The variables by which tasks of Slurm and ranks of torch and Horovod know who they are.  Those of
// MPI are known by the beginnings of their names (launch/child_environment.h).
inline constexpr const char* kIdentityNames[] = {
    "SLURM_PROCID",       "SLURM_LOCALID",      "SLURM_NODEID",
    "SLURM_GTIDS",        "SLURM_TASK_PID",     "RANK",
    "WORLD_SIZE",         "LOCAL_RANK",         "LOCAL_WORLD_SIZE",
    "GROUP_RANK",         "NODE_RANK",          "HOROVOD_RANK",
    "HOROVOD_SIZE",       "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",
    "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE", "HOROVOD_HOSTNAME"};

// The variables by which programs of Slurm know the step that they are a task of.  Ranks of mpirun
// are tasks of no step: what they find there is of the batch script, or of the step of mpirun's
// daemon, which has one task on each node.  A framework that finds some of them takes itself for a
// task of srun (Lightning-AI/pytorch-lightning#13605).  SLURM_STEP_ID stays: a ddlrun that a rank
// starts knows by it that it has to share the resources of a step.
inline constexpr const char* kStepNames[] = {"SLURM_NTASKS",          "SLURM_NPROCS",
                                             "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE",
                                             "SLURM_NNODES",          "SLURM_DISTRIBUTION",
                                             "SLURM_STEP_NODELIST",   "SLURM_STEP_NUM_NODES",
                                             "SLURM_STEP_NUM_TASKS",  "SLURM_STEP_TASKS_PER_NODE",
                                             "SLURM_OVERLAP"};

}  // namespace launcher
