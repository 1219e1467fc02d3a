// SPDX-License-Identifier: Apache-2.0
//
// Completes an allocation: asks scontrol what Slurm's variables do not say about the nodes of a
// job. Where they say it, nothing is asked.

#pragma once

#include "launcher/allocation/allocation.h"
#include "launcher/base/environment.h"

namespace launcher {

// Asks how many GPUs the job has on each node, where no variable says it
// (Allocation::gpus_unclear). Throws LaunchError(EX_CONFIG) when scontrol does not answer, or says
// that the job has ended.
void QuerySlurmForGpus(const Environment& environment, Allocation* allocation);

// Asks how many GPUs a node has, for a job that has asked for neither GPUs nor tasks, and sets
// gpus_per_node_unasked.
void LookForForgottenGpus(const Environment& environment, Allocation* allocation);

// Asks how many CPUs Slurm counts on a node, for a job that has asked for CPUs per task.  Sets
// cpus_are_cores where these are as many as the node has cores; the node has `threads` hardware
// threads, `threads_per_core` in each core.
void LookWhatACpuIs(int threads, int threads_per_core, const Environment& environment,
                    Allocation* allocation);

// The address of a node, as Slurm has it; "" where scontrol does not say it.
std::string QuerySlurmForAddress(const std::string& host, const Environment& environment);

}  // namespace launcher
