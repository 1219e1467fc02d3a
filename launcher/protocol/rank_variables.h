// SPDX-License-Identifier: Apache-2.0
//
// The names of what rank_environment.h gives to every rank, and those that say who an enclosing
// rank is.  Without the standard library, for the shim (launcher/shim) reads it too.

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
  kSpawner,
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
    {"DDLRUN_SPAWNER", RankValue::kSpawner},
    {"DDLRUN_PMI", RankValue::kPmi},
    {"DDLRUN_RUN_DIR", RankValue::kRunDirectory},
    {"DDLRUN_RESTART_COUNT", RankValue::kRestartCount},
    {"DDLRUN_GPUS", RankValue::kGpus},
};

// "all", "rank", or not set for "auto": which GPUs of its node a rank sees (--gpu-visibility).
inline constexpr char kGpuVisibilityVariable[] = "DDLRUN_GPU_VISIBILITY";

// What Open MPI's mpirun gives to its ranks, and scripts read that were written for it.  The shim
// gives them to ranks of srun that have a PMI: MPI_Init finds the same numbers by it.  Elsewhere
// every MPI program is a world of its own, and they would say otherwise (doc/decisions/0026).
inline constexpr RankVariable kOpenMpiVariables[] = {
    {"OMPI_COMM_WORLD_RANK", RankValue::kRank},
    {"OMPI_COMM_WORLD_SIZE", RankValue::kWorldSize},
    {"OMPI_COMM_WORLD_LOCAL_RANK", RankValue::kLocalRank},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", RankValue::kLocalWorldSize},
};

// Of Slurm's tasks, torch and Horovod; MPI's are known by their prefixes (variable_table.h).
inline constexpr const char* kIdentityNames[] = {
    "SLURM_PROCID",       "SLURM_LOCALID",      "SLURM_NODEID",
    "SLURM_GTIDS",        "SLURM_TASK_PID",     "RANK",
    "WORLD_SIZE",         "LOCAL_RANK",         "LOCAL_WORLD_SIZE",
    "GROUP_RANK",         "NODE_RANK",          "HOROVOD_RANK",
    "HOROVOD_SIZE",       "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",
    "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE", "HOROVOD_HOSTNAME"};

}  // namespace launcher
