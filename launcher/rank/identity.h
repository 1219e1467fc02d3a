// SPDX-License-Identifier: Apache-2.0
//
// Who this rank is by what its launcher says, and whether the plan agrees.  Without this check a
// job of N ranks could silently become N jobs of one rank each.  Pure.

#pragma once

#include <optional>
#include <string>

#include "launcher/base/environment.h"
#include "launcher/protocol/rank_job.h"

namespace launcher {

struct Identity {
  int rank = 0;
  // What the launcher says about the rest; empty where it says nothing.
  std::optional<int> world_size, local_rank, local_world_size;
  std::string source;  // "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", ...: for messages
};

// Reads who this rank is: by the --rank on the shim's command line (`given`), otherwise by the
// variables of `launcher`.  Of a step of Slurm the PMI must say the same rank: with the `pmi`
// "pmix" PMIX_RANK, with "pmi2" PMI_RANK.
//
// Throws LaunchError(EX_CONFIG) when nothing says who this rank is, or the value is no number.  Any
// other value that is not numeric is ignored.
Identity ReadIdentity(const Environment& environment, const LauncherTraits& launcher,
                      const std::string& pmi, std::optional<int> given);

// The host that `rank` runs on, in the spelling of the plan: where the names of the plan are those
// of Slurm, by SLURMD_NODENAME, which slurmd sets for each of its tasks; elsewhere the host of the
// plan that has the name of this machine (`kernel_name`, as gethostname has it).  Where neither
// tells, as with addresses and names of other networks, it is the host of the plan.
std::string HostOfRank(const RankJob& job, const RankPlacement& rank,
                       const Environment& environment, const std::string& kernel_name);

// The entry of the plan for `identity`.  Throws LaunchError(EX_CONFIG), with both values, when the
// plan has no such rank, or says another world size, local rank, local world size or host.
const RankPlacement& FindOwnPlacement(const RankJob& job, const Identity& identity,
                                      const Environment& environment,
                                      const std::string& kernel_name);

}  // namespace launcher
