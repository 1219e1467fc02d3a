// SPDX-License-Identifier: Apache-2.0
//
// Which rank runs where, on which GPU, bound to which cores: the whole decision, as a value.
// Printed by --dry-run, turned into files by plan_files and into commands by spawn/, verified on
// the node by the shim.

#pragma once

#include <string>
#include <vector>

namespace launcher {

struct RankPlan {
  int rank = 0;
  int node = 0;            // index into Plan::nodes
  int local_rank = 0;      // position among the ranks of the node
  int gpu = -1;            // index in PCI order; -1: none
  int numa_os_index = -1;  // where memory is bound; -1: not bound
  std::vector<int> cores;  // logical cores of the node, never shared by two ranks; empty: not bound
  std::vector<int> cpus;   // OS numbers of their hardware threads
};

struct NodePlan {
  std::string host;
  std::vector<int> ranks;  // global ranks on it, ascending
};

// Invariants: ranks[r].rank == r; nodes[ranks[r].node].ranks holds r; local ranks of a node are
// 0..n-1; no core of a node belongs to two ranks; no GPU of a node to two ranks unless there are
// more ranks than GPUs and that was asked for.
struct Plan {
  std::vector<RankPlan> ranks;
  std::vector<NodePlan> nodes;
  std::string mode = "p";  // DDL mode letter
  int racks = 1;
  int aisles = 1;
};

}  // namespace launcher
