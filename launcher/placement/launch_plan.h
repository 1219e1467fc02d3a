// SPDX-License-Identifier: Apache-2.0
//
// The plan says which rank runs where, on which GPU, bound to which cores: the whole decision, as a
// value.  --dry-run prints it, launch_plan_files.h makes files of it and spawn/ commands, and the
// shim of each rank makes sure on the node that it holds there.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace launcher {

struct RankPlacement {
  int rank = 0;
  int node = 0;            // index into LaunchPlan::nodes
  int local_rank = 0;      // position among the ranks of the node
  int gpu = -1;            // index in PCI order; -1: none, or which is not known
  int numa_os_index = -1;  // where memory is bound; -1: not bound
  std::vector<int> cores;  // indices into NodeTopology::cores, never shared by two ranks of a node;
                           // empty: not bound
  std::vector<int> cpus;   // OS numbers of their hardware threads
};

struct NodePlacement {
  std::string host;
  std::string network;     // its switches or blocks, "pod1.s3"; "" not known
  int allocated_node = 0;  // index into Allocation::nodes
  int component = 0;       // of a heterogeneous Slurm job
  int gpus = 0;            // how many the job was granted there, whether or not ranks use them
  std::vector<int> ranks;  // global ranks on it, ascending
};

// A node of the allocation that got no rank is not in the plan.
//
// Invariants:
//
//   - ranks[r].rank == r, and nodes[ranks[r].node].ranks has r
//   - the local ranks of a node are 0 to n-1
//   - no core of a node belongs to two ranks
//   - no GPU of a node belongs to two ranks, unless the user has asked for more ranks than GPUs, or
//     the ranks have slices of it
struct LaunchPlan {
  std::vector<RankPlacement> ranks;
  std::vector<NodePlacement> nodes;
  std::string network_unit;  // what NodePlacement::network names: "switch", "block"; "" not known
  std::string mode = "p";    // DDL mode letter
  int racks = 1;
  int aisles = 1;
  std::optional<int> cpus_per_rank;   // that were asked for
  bool cpus_are_cores = false;        // cpus_per_rank counts cores, not hardware threads
  std::vector<std::string> warnings;  // one line each with its code (messages.h)
};

}  // namespace launcher
