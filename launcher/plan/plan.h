// SPDX-License-Identifier: Apache-2.0
//
// Which rank runs where, on which GPU, bound to which cores: the whole decision, as a value.
// Printed by --dry-run, turned into files by plan_files and into commands by spawn/, verified on
// the node by the shim.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace launcher {

struct RankPlan {
  int rank = 0;
  int node = 0;            // index into Plan::nodes
  int local_rank = 0;      // position among the ranks of the node
  int gpu = -1;            // index in PCI order; -1: none, or which is not known
  int numa_os_index = -1;  // where memory is bound; -1: not bound
  std::vector<int> cores;  // indices into NodeTopology::cores, never shared by two ranks of a node;
                           // empty: not bound
  std::vector<int> cpus;   // OS numbers of their hardware threads
};

struct NodePlan {
  std::string host;
  int allocated_node = 0;  // index into Allocation::nodes
  int component = 0;       // of a heterogeneous Slurm job
  int gpus = 0;            // granted there, whether or not ranks use them
  std::vector<int> ranks;  // global ranks on it, ascending
};

// A node of the allocation that got no rank is not in the plan.
//
// Invariants: ranks[r].rank == r; nodes[ranks[r].node].ranks holds r; local ranks of a node are
// 0..n-1; no core of a node belongs to two ranks; no GPU of a node to two ranks unless there are
// more ranks than GPUs and that was asked for, or they have slices of it.  FindPlanError in
// plan_check.h checks them.
struct Plan {
  std::vector<RankPlan> ranks;
  std::vector<NodePlan> nodes;
  std::string mode = "p";  // DDL mode letter
  int racks = 1;
  int aisles = 1;
  std::optional<int> cpus_per_rank;   // asked for, in hardware threads, or cores:
  bool cpus_are_cores = false;        // see Allocation
  std::vector<std::string> warnings;  // one line each with its code (messages.h)
};

}  // namespace launcher
