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

}  // namespace launcher
