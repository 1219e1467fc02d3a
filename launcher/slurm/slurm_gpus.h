// SPDX-License-Identifier: Apache-2.0
//
// The GPU half of slurm_allocation.  Pure, safe from any thread.

#pragma once

#include <string>
#include <vector>

#include "launcher/allocation/allocation.h"
#include "launcher/slurm/slurm_variables.h"

namespace launcher {

// Fills in gpus and gpu_indices of `nodes`, whose hosts and slots are set.  They are those of the
// job, or of the component of a heterogeneous job whose variables end in `suffix`.  Returns "", or
// why the variables do not say what each node has (Allocation::gpus_unclear).  Throws as
// ReadSlurmAllocation does.
std::string ReadGpus(const Environment& environment, const std::string& suffix,
                     std::vector<AllocatedNode>* nodes);

}  // namespace launcher
