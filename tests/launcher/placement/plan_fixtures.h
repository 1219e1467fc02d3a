// SPDX-License-Identifier: Apache-2.0
//
// Nodes and allocations that the tests of plan/ share.

#pragma once

#include <string>
#include <vector>

#include "launcher/allocation/allocation.h"
#include "launcher/topology/hwloc_topology.h"
#include "launcher/topology/node_topology.h"
#include "tests/support/directories.h"

namespace launcher {

inline NodeTopology ReadTopologyFixture(const std::string& name) {
  return ReadTopologyFile(tests::SourceDirectory() + "/tests/fixtures/hwloc/" + name);
}

// `numa_cores` cores on each NUMA node, `threads` CPUs each, and the GPUs near NUMA nodes
// `gpu_numa`.
inline NodeTopology MakeNode(const std::vector<int>& numa_cores, int threads,
                             const std::vector<int>& gpu_numa) {
  NodeTopology node;
  for (int numa = 0; numa < static_cast<int>(numa_cores.size()); ++numa) {
    NumaNode numa_node{.os_index = 8 * numa};
    for (int i = 0; i < numa_cores[numa]; ++i) {
      const int index = static_cast<int>(node.cores.size());
      Core core{numa, i, numa, {}};
      for (int thread = 0; thread < threads; ++thread)
        core.cpus.push_back(index * threads + thread);
      numa_node.cores.push_back(index);
      node.cores.push_back(core);
    }
    node.numa_nodes.push_back(numa_node);
  }
  for (const int numa : gpu_numa) node.gpus.push_back({"", numa, ""});
  return node;
}

// A node of Bede: two POWER9 processors and four GPUs.
inline NodeTopology Ac922() { return MakeNode({16, 16}, 4, {0, 0, 1, 1}); }

inline constexpr int kUnlogged = -1;

// Hosts n1, n2, ... of a Slurm job; kUnlogged for GPUs and slots that are not said.
inline Allocation MakeAllocation(int nodes, int gpus, int slots) {
  Allocation allocation;
  allocation.origin = Allocation::Origin::kSlurm;
  allocation.origin_text = std::string("SLURM_JOB_NODELIST=n[1-") + std::to_string(nodes) + "]";
  for (int i = 1; i <= nodes; ++i) {
    AllocatedNode node{.host = std::string("n") + std::to_string(i)};
    if (gpus >= 0) node.gpus = gpus;
    if (slots >= 0) node.slots = slots;
    allocation.nodes.push_back(node);
  }
  return allocation;
}

}  // namespace launcher
