// SPDX-License-Identifier: Apache-2.0
//
// Whether this node has the GPUs that the plan counts on.  The batch script's variables are about
// its own node and are copied to the others; what Slurm says here, and /dev, is the truth.

#pragma once

#include "launcher/environment.h"

namespace launcher {

// `planned` GPUs are granted on this node, `host`, by the plan.  `devices` as CountGpuDevices
// (launcher/shim/gpus.h). Throws LaunchError(EX_CONFIG), naming both numbers, when
// SLURM_GPUS_ON_NODE, SLURM_STEP_GPUS or CUDA_VISIBLE_DEVICES of this task say another number, or
// there are fewer devices.  Pure.
void CheckGpus(int planned, const std::string& host, const Environment& environment, int devices);

}  // namespace launcher
