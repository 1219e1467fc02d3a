// SPDX-License-Identifier: Apache-2.0
//
// The GPUs that NVIDIA's driver lists in /proc.  Reading that does not start the driver.

#pragma once

#include <string>
#include <vector>

#include "launcher/topology/node_topology.h"

namespace launcher {

struct DriverGpu {
  std::string pci_bus_id;  // "0004:04:00.0"
  std::string model;       // "Tesla V100-SXM2-16GB"; "" not said
  std::string uuid;        // "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"; "" not said
  int minor = -1;          // N of its device file /dev/nvidiaN; -1 not said
};

// In PCI order; none where there is no driver.  `root` is put in front of /proc, for tests; "" is
// this machine.
std::vector<DriverGpu> ReadDriverGpus(const std::string& root);

// Puts the GPUs of `node` in the order of their device files, with one of unknown place for each
// number that is missing.  Nothing changes unless `known` says the number of each.  Pure.
void OrderByDeviceFile(const std::vector<DriverGpu>& known, NodeTopology* node);

}  // namespace launcher
