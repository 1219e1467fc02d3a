// SPDX-License-Identifier: Apache-2.0
#include "launcher/placement/node_binding.h"

#include <algorithm>

#include "launcher/placement/gpu_affinity.h"
#include "support/number.h"

namespace launcher {

using support::Counted;

int ThreadsPerCore(const NodeTopology& topology) {
  std::size_t threads = 0;
  for (const Core& core : topology.cores) {
    threads = threads == 0 ? core.cpus.size() : std::min(threads, core.cpus.size());
  }
  return std::max(1, static_cast<int>(threads));
}

int CoresFor(int cpus_per_rank, bool cpus_are_cores, const NodeTopology& topology) {
  const int per_core = cpus_are_cores ? 1 : ThreadsPerCore(topology);
  return (cpus_per_rank + per_core - 1) / per_core;
}

std::string BindRanks(const NodeTopology& node, std::optional<int> cpus_per_rank,
                      bool cpus_are_cores, const std::vector<RankPlacement*>& ranks) {
  std::vector<int> gpus;
  for (const RankPlacement* rank : ranks) gpus.push_back(rank->gpu);
  const int cores_per_rank = cpus_per_rank ? CoresFor(*cpus_per_rank, cpus_are_cores, node) : 0;
  const std::vector<std::vector<int>> cores = SplitCores(node, gpus, cores_per_rank);
  if (cores.front().empty()) {
    const auto count = static_cast<int>(ranks.size());
    return Counted(count, "rank") + (count == 1 ? " needs " : " need ") +
           Counted(std::max(1, cores_per_rank), "core") + " each, but only " +
           std::to_string(node.cores.size()) + " may be used";
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    RankPlacement& rank = *ranks[i];
    rank.cores = cores[i];
    rank.cpus.clear();
    const int numa = node.cores[rank.cores.front()].numa;
    bool one_numa = true;
    for (const int core : rank.cores) {
      one_numa = one_numa && node.cores[core].numa == numa;
      rank.cpus.insert(rank.cpus.end(), node.cores[core].cpus.begin(), node.cores[core].cpus.end());
    }
    std::sort(rank.cpus.begin(), rank.cpus.end());
    rank.numa_os_index = one_numa ? node.numa_nodes[numa].os_index : -1;
  }
  return "";
}

}  // namespace launcher
