// SPDX-License-Identifier: Apache-2.0
//
// Makes a plan of the user's own rankfile.  It says which rank runs where; its cores stay empty,
// since mpirun binds the ranks by the file itself.  Pure.

#pragma once

#include <string>

#include "launcher/allocation/allocation.h"
#include "launcher/placement/launch_plan.h"

namespace launcher {

// `text` is that of the file `name`.  Throws LaunchError(EX_DATAERR) with line and column where it
// is no rankfile, and for one without a rank.
LaunchPlan PlanFromRankfile(const std::string& text, const std::string& name);

// The text of the same file with hosts named as `job` names them, since srun, which mpirun starts
// inside Slurm, knows no other names; "" where the file has these names already.  Throws as above,
// and LaunchError(EX_CONFIG) for a host that is not in the job.
std::string WithHostsOfJob(const std::string& text, const std::string& name, const Allocation& job);

}  // namespace launcher
