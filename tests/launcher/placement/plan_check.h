// SPDX-License-Identifier: Apache-2.0
//
// Checks the invariants of launch_plan.h.

#pragma once

#include <set>
#include <string>

#include "launcher/placement/launch_plan.h"

namespace launcher {

inline std::string FindNodeError(const LaunchPlan& plan, int node_index, bool gpus_shared) {
  const NodePlacement& node = plan.nodes[node_index];
  const std::string where = "node " + node.host + ": ";
  if (node.ranks.empty()) return where + "has no rank";
  std::set<int> cores;
  std::set<int> cpus;
  std::set<int> gpus;
  int local_rank = 0;
  int last_rank = -1;
  for (const int r : node.ranks) {
    const std::string rank_text = where + "rank " + std::to_string(r);
    if (r <= last_rank) return rank_text + " is out of order";
    last_rank = r;
    if (r >= static_cast<int>(plan.ranks.size())) return rank_text + " does not exist";
    const RankPlacement& rank = plan.ranks[r];
    if (rank.node != node_index) return rank_text + " says it is on another node";
    if (rank.local_rank != local_rank++) return rank_text + " has the wrong local rank";
    if (rank.cores.empty() != rank.cpus.empty()) return rank_text + " has cores without CPUs";
    for (const int core : rank.cores) {
      if (!cores.insert(core).second) return where + "core " + std::to_string(core) + " is shared";
    }
    for (const int cpu : rank.cpus) {
      if (!cpus.insert(cpu).second) return where + "CPU " + std::to_string(cpu) + " is shared";
    }
    if (rank.gpu >= 0 && !gpus.insert(rank.gpu).second && !gpus_shared) {
      return where + "GPU " + std::to_string(rank.gpu) + " is shared";
    }
  }
  return "";
}

// The first broken invariant in words, or "".  `gpus_shared`: two ranks may have one GPU.
inline std::string FindPlanError(const LaunchPlan& plan, bool gpus_shared) {
  std::size_t ranks_on_nodes = 0;
  std::set<std::string> hosts;
  for (int i = 0; i < static_cast<int>(plan.nodes.size()); ++i) {
    if (!hosts.insert(plan.nodes[i].host).second) {
      return "node " + plan.nodes[i].host + ": is there twice";
    }
    const std::string error = FindNodeError(plan, i, gpus_shared);
    if (!error.empty()) return error;
    ranks_on_nodes += plan.nodes[i].ranks.size();
  }
  if (ranks_on_nodes != plan.ranks.size()) return "a rank is on no node";
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    if (plan.ranks[r].rank != static_cast<int>(r)) return "ranks are not numbered from 0";
  }
  if (plan.nodes.size() % static_cast<std::size_t>(plan.racks * plan.aisles) != 0) {
    return "racks do not hold equal numbers of nodes";
  }
  return "";
}

}  // namespace launcher
