// SPDX-License-Identifier: Apache-2.0
//
// What only a report to people tells of this node (ddlrun --site-report): how it is made, its
// limits and networks.  Nothing here throws: what cannot be read is left out.  No detail has a
// path, a name of a user or the value of a variable.  `root` is put in front of /proc and /sys, for
// tests; "" is the machine itself.

#pragma once

#include <string>
#include <vector>

#include "launcher/health/node_info.h"

namespace launcher {

using Details = std::vector<Detail>;

// Adds a detail, unless its text is "".
void AddDetail(const std::string& name, const std::string& text, Details& details);

// The NUMA nodes with their CPUs and memory, the CPUs that this process may use, settings of the
// kernel and its modules that matter between nodes and GPUs.
void ReadMachineDetails(const std::string& root, Details& details);

// The networks: interfaces of the kernel, and InfiniBand's devices with firmware and place.
void ReadNetworkDetails(const std::string& root, Details& details);

// What one process may use: the limits of /proc/self/limits, and those of its control groups, of
// both versions.
void ReadLimitDetails(const std::string& root, Details& details);

// " at NUMA node 8" for the PCI device of this directory of /sys; "" where it has none, or it is
// not known.
std::string PlaceOf(const std::string& device_directory);

// What only a report to people tells of the GPUs of this node: driver, libraries, how the GPUs are
// connected and where they are.  Nothing here throws.

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
