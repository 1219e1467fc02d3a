// SPDX-License-Identifier: Apache-2.0
//
// The first step of the pipeline: which nodes the ranks may run on.

#pragma once

#include <optional>

#include "launcher/allocation/allocation.h"
#include "launcher/base/environment.h"
#include "launcher/cli/options.h"

namespace launcher {

// What Slurm has granted (ReadSlurmAllocation); nullopt outside of Slurm.  With --accelerators 0 it
// does not matter which GPUs CUDA_VISIBLE_DEVICES leaves.
std::optional<Allocation> ReadJob(const Options& options, Environment environment);

// Inside Slurm the nodes of the job, of which -H and -hostfile choose some; outside of Slurm the
// hosts of -H or -hostfile, else this machine.  With `may_leave_job`, hosts that are not all of the
// job are taken as outside of Slurm: mpirun reaches them by ssh.  Throws LaunchError.
Allocation ReadAllocation(const Options& options, const Environment& environment,
                          bool may_leave_job);

}  // namespace launcher
