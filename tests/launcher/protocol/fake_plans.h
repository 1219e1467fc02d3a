// SPDX-License-Identifier: Apache-2.0
//
// Plans as the planner makes them, for the tests of what ranks are told.

#pragma once

#include <string>
#include <vector>

#include "launcher/placement/launch_plan.h"

namespace launcher {

// A rank on each node of `nodes` (indices), in this order; local rank i has GPU i and two cores of
// two hardware threads.  Nodes are called n1, n2, ... and were granted as many GPUs as they have
// ranks.
inline LaunchPlan PlanOf(const std::vector<int>& nodes) {
  LaunchPlan plan;
  for (const int node : nodes) {
    while (static_cast<int>(plan.nodes.size()) <= node) {
      plan.nodes.emplace_back().host = "n" + std::to_string(plan.nodes.size() + 1);
    }
    NodePlacement& on_node = plan.nodes[static_cast<std::size_t>(node)];
    RankPlacement rank;
    rank.rank = static_cast<int>(plan.ranks.size());
    rank.node = node;
    rank.local_rank = static_cast<int>(on_node.ranks.size());
    rank.gpu = rank.local_rank;
    rank.numa_os_index = rank.local_rank < 2 ? 0 : 8;
    rank.cores = {2 * rank.local_rank, 2 * rank.local_rank + 1};
    for (const int cpu : {0, 1, 40, 41}) rank.cpus.push_back(2 * rank.local_rank + cpu);
    on_node.gpus = rank.local_rank + 1;
    on_node.ranks.push_back(rank.rank);
    plan.ranks.push_back(rank);
  }
  return plan;
}

// `ranks_per_node` ranks on each of `nodes` nodes, node by node or in turn.
inline LaunchPlan EvenPlan(int nodes, int ranks_per_node, bool is_cyclic = false) {
  std::vector<int> order;
  for (int rank = 0; rank < nodes * ranks_per_node; ++rank) {
    order.push_back(is_cyclic ? rank % nodes : rank / ranks_per_node);
  }
  return PlanOf(order);
}

}  // namespace launcher
