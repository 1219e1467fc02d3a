// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "launcher/plan/node_binding.h"
#include "launcher/rank/node_plan.h"
#include "launcher/topology/hwloc_topology.h"

namespace launcher {

void PlanThisNode(int node, char**, Plan* plan) {
  std::vector<RankPlan*> ranks;
  for (RankPlan& rank : plan->ranks) {
    if (rank.node == node) ranks.push_back(&rank);
  }
  std::sort(ranks.begin(), ranks.end(),
            [](const RankPlan* a, const RankPlan* b) { return a->local_rank < b->local_rank; });
  const NodeTopology topology = ReadLiveTopology();
  for (RankPlan* rank : ranks) {
    rank->cores.clear();
    rank->cpus.clear();
    rank->numa_os_index = -1;
  }
  // A node with too few cores leaves its ranks unbound, as ddlrun warns of where it can see.
  BindRanks(topology, plan->cpus_per_rank, ranks);
}

}  // namespace launcher
