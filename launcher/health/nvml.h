// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's management library, loaded at run time.  The few declarations of nvml.h that are needed
// are in nvml.cc; a function that an older driver lacks leaves its fact unknown.

#pragma once

#include <string>
#include <vector>

#include "launcher/health/node_facts.h"

namespace launcher {

struct FoundGpu {
  GpuFacts facts;
  std::string uuid;  // "GPU-...", "" not known
};

// The GPUs in NVML's order (PCI bus id).  None when `library` is not there, and then `problem`
// stays ""; or when it fails, and then `problem` says why.
std::vector<FoundGpu> ReadNvml(const std::string& library, std::string& problem);

}  // namespace launcher
