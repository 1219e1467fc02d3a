// SPDX-License-Identifier: Apache-2.0
//
// Whether this node has the GPUs that the plan counts on.  ddlrun planned by the variables of the
// batch script, which are about its own node; what Slurm and /dev say on this node is the truth.

#pragma once

#include <string>

#include "launcher/base/environment.h"
#include "launcher/placement/launch_plan.h"

namespace launcher {

// By the plan the job was granted `planned` GPUs on this node, `host`.  `devices` is that of
// CountGpuDevices (topology/gpus_of_node.h).  Throws LaunchError(EX_CONFIG) that names both numbers
// when SLURM_GPUS_ON_NODE, SLURM_STEP_GPUS or CUDA_VISIBLE_DEVICES of this task say another number,
// or when there are fewer devices.  Slices of GPUs may share a device.  Pure.
void CheckGpus(int planned, const std::string& host, const Environment& environment, int devices);

// Gives the ranks of node `node` the GPUs that `granted`, the SLURM_STEP_GPUS of this node, names
// instead of those that the plan assumes: the first GPU of the plan becomes the first of the list,
// and so on, so that ranks that share a GPU still do.  True when any has changed.  A list with
// anything but numbers, or with fewer GPUs than the ranks use, changes nothing.  Pure.
bool TakeGrantedGpus(const std::string& granted, int node, LaunchPlan* plan);

}  // namespace launcher
