// SPDX-License-Identifier: Apache-2.0
//
// A plan out of the user's own rankfile: who runs where.  Cores stay empty, since mpirun binds by
// the file itself.  Pure.

#pragma once

#include <string>

#include "launcher/allocation/allocation.h"
#include "launcher/plan/plan.h"

namespace launcher {

// `text` of the file `name`.  Throws LaunchError(EX_DATAERR) with line and column, and for a file
// without a rank.
Plan PlanFromRankfile(const std::string& text, const std::string& name);

// The same file with the hosts named as `job` names them (Slurm's srun, which mpirun starts, knows
// no other names), "" where they are.  Throws as above, and LaunchError(EX_CONFIG) for a host that
// is not of the job.
std::string WithHostsOfJob(const std::string& text, const std::string& name, const Allocation& job);

}  // namespace launcher
