// SPDX-License-Identifier: Apache-2.0
//
// Whether this node has the GPUs that the plan counts on.  The batch script's variables are about
// its own node and are copied to the others; what Slurm says here, and /dev, is the truth.

#pragma once

#include <string>

#include "launcher/base/environment.h"
#include "launcher/plan/plan.h"

namespace launcher {

// `planned` GPUs are granted on this node, `host`, by the plan.  `devices` as CountGpuDevices
// (launcher/topology/gpus_of_node.h). Throws LaunchError(EX_CONFIG), naming both numbers, when
// SLURM_GPUS_ON_NODE, SLURM_STEP_GPUS or CUDA_VISIBLE_DEVICES of this task say another number, or
// there are fewer devices (slices of GPUs share one).  Pure.
void CheckGpus(int planned, const std::string& host, const Environment& environment, int devices);

// Gives the ranks of node `node` the GPUs that `granted` names, SLURM_STEP_GPUS of this node, in
// place of those that the plan took them to be: the first rank's the first, and so on; ranks that
// share one still do.  True when that changed any.  A list of anything but numbers, or with fewer
// than the ranks use, changes nothing.  Pure.
bool TakeGrantedGpus(const std::string& granted, int node, Plan* plan);

}  // namespace launcher
