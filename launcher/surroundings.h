// SPDX-License-Identifier: Apache-2.0
//
// What ddlrun and bede-mpirun find around them: files, programs, this machine's name, the
// allocation, the site file.  The edge before everything pure.

#pragma once

#include <string>

#include "launcher/allocation/allocation.h"
#include "launcher/base/environment.h"
#include "launcher/cli/options.h"

namespace launcher {

// Slurm's, of which -H and -hostfile choose nodes; outside of Slurm these, else this machine.
// `may_leave_job`: hosts that are not all of the job are taken as outside of Slurm (mpirun by ssh).
// Throws LaunchError.
Allocation ReadAllocation(const Options& options, const Environment& environment,
                          bool may_leave_job);

// Where no variable says how many GPUs each node has, scontrol does.  Throws LaunchError(EX_CONFIG)
// when it does not answer.
void AskSlurmForGpus(const Environment& environment, Allocation* allocation);

// Sets gpus_per_node_unasked of a Slurm job that asked for neither GPUs nor tasks, where scontrol
// says it; for any other job nothing is started.
void LookForForgottenGpus(const Environment& environment, Allocation* allocation);

// Sets cpus_are_cores of a Slurm job that asked for CPUs per task, where scontrol counts as many
// CPUs as a node has cores: `threads` hardware threads in all, `threads_per_core` in each.
void LookWhatACpuIs(int threads, int threads_per_core, const Environment& environment,
                    Allocation* allocation);

// Whether `host` is Slurm's name of this node, its host name (with or without the domain), or a
// name of the loopback.
bool IsThisMachine(const std::string& host, const Environment& environment);

}  // namespace launcher
