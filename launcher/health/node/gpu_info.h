// SPDX-License-Identifier: Apache-2.0
//
// The GPUs of this node that the job may use, as NVML lists them, else /proc, else /dev.  NVML is
// loaded at run time, so that no build needs it.

#pragma once

#include <string>
#include <vector>

#include "launcher/health/node_info.h"

namespace launcher {

struct GpuQuery {
  std::string nvml = "libnvidia-ml.so.1";  // the name for dlopen
  std::string root;                        // is put in front of /proc and /dev, for tests
  std::string visible;                     // the value of CUDA_VISIBLE_DEVICES
  bool all_visible = true;                 // CUDA_VISIBLE_DEVICES is not set
};

// Fills gpu_source, gpu_problem, gpus and imex_problem.
void ReadGpuInfo(const GpuQuery& sources, NodeInfo& info);

}  // namespace launcher
