// SPDX-License-Identifier: Apache-2.0
//
// Who this rank is according to what started it, and whether the plan agrees.  A job that silently
// becomes N worlds of one is the worst outcome; this is where it is stopped.  Pure.

#pragma once

#include <optional>
#include <string>

#include "launcher/base/environment.h"
#include "launcher/protocol/rank_job.h"

namespace launcher {

struct Identity {
  int rank = 0;
  // What the spawner says about the rest; empty where it says nothing.
  std::optional<int> world_size, local_rank, local_world_size;
  std::string host;    // Slurm's name of this node; ""
  std::string source;  // "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", ...: for messages
};

// `given` is the --rank that the local spawner wrote on the shim's command line.  Of srun:
// SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID, SLURMD_NODENAME, and the rank that `pmi` gave
// it must be the same: PMIX_RANK of "pmix", PMI_RANK of "pmi2".  Of mpirun: OMPI_COMM_WORLD_RANK,
// _SIZE, _LOCAL_RANK, _LOCAL_SIZE; else PMIX_RANK alone. Throws LaunchError(EX_CONFIG) when nothing
// says who this rank is, or a rank is no number; any other value that is no number says nothing.
Identity ReadIdentity(const Environment& environment, const std::string& spawner,
                      const std::string& pmi, std::optional<int> given);

// The entry of the plan for `identity`.  Throws LaunchError(EX_CONFIG), naming both values, when
// the rank is outside the plan or its world size, local rank, local world size or host is another.
const RankPlan& FindOwnPlan(const RankJob& job, const Identity& identity);

}  // namespace launcher
