// SPDX-License-Identifier: Apache-2.0
//
// The part of slurm_allocation that is about GPUs.  Pure, safe from any thread.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/allocation/allocation.h"
#include "launcher/slurm/slurm_variables.h"

namespace launcher {

// Fills in gpus and gpu_indices of `nodes`, whose hosts and slots are set.  These are the nodes of
// the job or, with a `suffix`, those of the component of a heterogeneous job whose variables end
// with it. Returns "", or why the variables do not say how many GPUs each node has
// (Allocation::gpus_unclear). Throws as ReadSlurmAllocation does.
std::string ReadGpus(const Environment& environment, const std::string& suffix,
                     std::vector<AllocatedNode>* nodes);

// How many GPUs a task of the job has (--gpus-per-task); nullopt where no variable says it.
std::optional<int> GpusPerTask(const Environment& environment);

}  // namespace launcher
