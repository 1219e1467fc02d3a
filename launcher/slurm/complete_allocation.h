// SPDX-License-Identifier: Apache-2.0
//
// What Slurm's variables leave open about the nodes of a job, asked of scontrol.  Nothing is asked
// where nothing is open.

#pragma once

#include "launcher/allocation/allocation.h"
#include "launcher/base/environment.h"

namespace launcher {

// Asks how many GPUs each node has, where no variable says it (Allocation::gpus_unclear).  Throws
// LaunchError(EX_CONFIG) when scontrol does not answer.
void AskSlurmForGpus(const Environment& environment, Allocation* allocation);

// Sets gpus_per_node_unasked of a Slurm job that asked for neither GPUs nor tasks, where scontrol
// says it; for any other job nothing is started.
void LookForForgottenGpus(const Environment& environment, Allocation* allocation);

// Sets cpus_are_cores of a Slurm job that asked for CPUs per task, where scontrol counts as many
// CPUs as a node has cores: `threads` hardware threads in all, `threads_per_core` in each.
void LookWhatACpuIs(int threads, int threads_per_core, const Environment& environment,
                    Allocation* allocation);

}  // namespace launcher
