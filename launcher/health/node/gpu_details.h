// SPDX-License-Identifier: Apache-2.0
//
// What only a report to people tells of the GPUs of this node: driver, libraries, how the GPUs are
// connected and where they are.  Nothing here throws.

#pragma once

#include <string>

#include "launcher/health/node/details.h"

namespace launcher {

// The versions of the driver, NCCL and cuDNN, as a program of this node would find them.  `nvml` is
// the name of NVML for dlopen, `root` is put in front of /proc, for tests.
void ReadGpuLibraries(const std::string& nvml, const std::string& root, Details& details);

// Of each of `gpus`, which are those of the job: where it is, memory, limit of power, and what
// slows it down now; of each pair the way between them.  `root` is put in front of /sys.
void ReadGpuPlaces(const std::string& nvml, const std::string& root,
                   const std::vector<GpuInfo>& gpus, Details& details);

// "2.18.5" for 21805, "2.7.8" for 2708, as ncclGetVersion says it.  Pure.
std::string NcclVersionText(int version);
// "8.9.2" for 8902, "9.1.0" for 90100, as cudnnGetVersion says it.  Pure.
std::string CudnnVersionText(std::size_t version);

}  // namespace launcher
