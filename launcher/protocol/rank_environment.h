// SPDX-License-Identifier: Apache-2.0
//
// The contract between the launcher and a rank: the environment variables that every rank is given.
// doc/reference/environment.md has the table for users.  Pure.  A program that reads them needs no
// other header of the launcher.

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "launcher/protocol/launchers.h"

namespace launcher {

// What a rank must know about itself.
struct RankInfo {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  int node_rank = 0;  // which of the job's nodes
  int node_count = 1;
  int gpus = 0;          // that the job was granted on this node
  std::string host;      // as the plan names it
  std::string launcher;  // its name in launchers.h; "" when started by hand
  std::string pmi;       // of srun: "pmix", "pmi2", "none"; else ""
  std::string run_dir;   // private to the job; "" when started by hand
  int restart_count = 0;
  std::string master_address;  // host of rank 0
  int master_port = 0;

  const LauncherTraits& traits() const { return TraitsOf(launcher.c_str()); }
};

// What a rank is by its variables (rank_variables.h: which has which value; the shim sets them).
// `get` returns the value of a variable, or nullopt where it is not set.  Without RANK and
// WORLD_SIZE the program was started by hand, as a world of one rank.  Without DDLRUN_GPUS,
// SLURM_GPUS_ON_NODE says how many GPUs were granted.
//
// Throws std::runtime_error that names the variable when one of a pair is missing, when a value is
// no number, or when two contradict each other: RANK is not below WORLD_SIZE, or the launcher
// of this rank, by hand any launcher, says another rank or another number of ranks in its variables
// (launchers.h).  So `srun -n4 program` without ddlrun is refused, and does not run as four worlds
// of one rank.
RankInfo ReadRankEnvironment(
    const std::function<std::optional<std::string>(const std::string&)>& get);

}  // namespace launcher
