// SPDX-License-Identifier: Apache-2.0
//
// What one node is made of, as far as placement needs it.  A value; made by hwloc_topology from the
// live machine or an XML file.

#pragma once

#include <string>
#include <vector>

namespace launcher {

struct NumaNode {
  int os_index = 0;        // 0 and 8 on an AC922; GPU memory nodes are left out
  std::vector<int> cores;  // indices into NodeTopology::cores
  long long memory_bytes = 0;
};

struct Core {
  int socket = 0;          // logical package number
  int core_in_socket = 0;  // what an Open MPI rankfile means by slot=socket:core
  int numa = 0;            // index into NodeTopology::numa_nodes
  std::vector<int> cpus;   // OS numbers of its hardware threads
};

struct Gpu {
  std::string pci_bus_id;  // "0004:04:00.0"
  int numa = -1;           // index of the nearest NUMA node with CPUs; -1 unknown
  std::string model;       // "" unknown
};

struct NodeTopology {
  std::vector<NumaNode> numa_nodes;  // those with CPUs, by os_index
  std::vector<Core> cores;           // those this job may use, in logical order
  std::vector<Gpu> gpus;             // by the numbers of the job (driver_gpus.h), else in PCI order
};

}  // namespace launcher
