// SPDX-License-Identifier: Apache-2.0
//
// NVML is NVIDIA's management library, which is loaded at run time.  nvml.cc has the few
// declarations of nvml.h that are needed.  What an older driver has no function for stays unknown.

#pragma once

#include <string>
#include <vector>

#include "launcher/health/node_info.h"

namespace launcher {

struct FoundGpu {
  GpuInfo info;
  std::string uuid;  // "GPU-...", "" not known
};

// The GPUs in the order of NVML, which is that of their PCI bus ids.  None when `library` is not
// there, or when it fails; only then `problem` says why.
std::vector<FoundGpu> ReadNvml(const std::string& library, std::string& problem);

}  // namespace launcher
