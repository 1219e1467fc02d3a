// SPDX-License-Identifier: Apache-2.0
//
// The GPUs of this node that the job may use, as NVML tells, else /proc, else /dev.  NVML is loaded
// at run time: no build needs it.

#pragma once

#include <string>
#include <vector>

#include "launcher/health/node_facts.h"

namespace launcher {

struct GpuSources {
  std::string nvml = "libnvidia-ml.so.1";  // as for dlopen
  std::string root;                        // /proc and /dev are read below it; "": the machine's
  std::string visible;                     // value of CUDA_VISIBLE_DEVICES
  bool all_visible = true;                 // it is not set
};

// Fills gpu_source, gpu_problem and gpus.
void ReadGpuFacts(const GpuSources& sources, NodeFacts& facts);

}  // namespace launcher
