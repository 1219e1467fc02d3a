// SPDX-License-Identifier: Apache-2.0

#include "launcher/placement/node_binding.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

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

namespace {

using support::Size;
using CoreLists = std::vector<std::vector<int>>;

// The NUMA node of each rank's GPU; -1 where the rank has none or it is not known.
std::vector<int> GpuNuma(const NodeTopology& node, const std::vector<int>& gpu_of_rank) {
  std::vector<int> numa;
  for (const int gpu : gpu_of_rank) {
    const bool known = gpu >= 0 && gpu < static_cast<int>(node.gpus.size());
    numa.push_back(known ? node.gpus[gpu].numa : -1);
  }
  return numa;
}

// Whether each NUMA node has `share` cores for every rank that is assigned to it.
bool Fits(const NodeTopology& node, const std::vector<int>& numa_of_rank, int share) {
  std::vector<int> ranks(node.numa_nodes.size(), 0);
  for (const int numa : numa_of_rank) {
    if (numa < 0) return false;
    ++ranks[numa];
    if (ranks[numa] * share > Size(node.numa_nodes[numa].cores)) return false;
  }
  return true;
}

// The NUMA node of each rank, ascending, so that each NUMA node has cores enough for all of its
// ranks.  The ranks are dealt out one by one, always to the NUMA node that then has the most cores
// for each of its ranks.  Empty when they do not fit.
std::vector<int> AssignNuma(const NodeTopology& node, int rank_count, int share) {
  std::vector<int> ranks(node.numa_nodes.size(), 0);
  for (int placed = 0; placed < rank_count; ++placed) {
    int best = -1;
    for (int i = 0; i < Size(ranks); ++i) {
      const int cores = Size(node.numa_nodes[i].cores);
      if ((ranks[i] + 1) * share > cores) continue;
      // Compares cores per rank, without a division.
      if (best == -1 ||
          cores * (ranks[best] + 1) > Size(node.numa_nodes[best].cores) * (ranks[i] + 1)) {
        best = i;
      }
    }
    if (best == -1) return {};
    ++ranks[best];
  }
  std::vector<int> numa_of_rank;
  for (int i = 0; i < Size(ranks); ++i) numa_of_rank.insert(numa_of_rank.end(), ranks[i], i);
  return numa_of_rank;
}

// Gives `ranks` consecutive runs of `cores`: `cores_per_rank` each, or all of them evenly if 0.
void ShareOut(const std::vector<int>& cores, const std::vector<int>& ranks, int cores_per_rank,
              CoreLists* result) {
  std::size_t next = 0;
  for (int i = 0; i < Size(ranks); ++i) {
    const int extra = i < Size(cores) % Size(ranks) ? 1 : 0;
    const int count = cores_per_rank > 0 ? cores_per_rank : Size(cores) / Size(ranks) + extra;
    std::vector<int>& mine = (*result)[ranks[i]];
    mine.assign(cores.begin() + next, cores.begin() + next + count);
    std::sort(mine.begin(), mine.end());
    next += count;
  }
}

}  // namespace

std::vector<std::vector<int>> SplitCores(const NodeTopology& node,
                                         const std::vector<int>& gpu_of_rank, int cores_per_rank) {
  const int rank_count = Size(gpu_of_rank);
  const int core_count = static_cast<int>(node.cores.size());
  CoreLists result(gpu_of_rank.size());
  if (rank_count == 0 || core_count / rank_count < std::max(1, cores_per_rank)) return result;

  const std::vector<int> gpu_numa = GpuNuma(node, gpu_of_rank);
  // Ranks whose GPUs are near to each other get cores near to each other, even where these are not
  // near to the GPUs.
  std::vector<int> rank_order(gpu_of_rank.size());
  std::iota(rank_order.begin(), rank_order.end(), 0);
  std::stable_sort(rank_order.begin(), rank_order.end(),
                   [&](int a, int b) { return gpu_numa[a] < gpu_numa[b]; });

  std::vector<std::vector<int>> ranks_of_numa(node.numa_nodes.size());
  if (Fits(node, gpu_numa, std::max(1, cores_per_rank))) {
    for (const int rank : rank_order) ranks_of_numa[gpu_numa[rank]].push_back(rank);
  } else {
    const int share = cores_per_rank > 0 ? cores_per_rank : core_count / rank_count;
    const std::vector<int> numa = AssignNuma(node, rank_count, share);
    for (int i = 0; i < Size(numa); ++i) ranks_of_numa[numa[i]].push_back(rank_order[i]);
    if (numa.empty()) {
      std::vector<int> all_cores;
      for (const NumaNode& numa_node : node.numa_nodes) {
        all_cores.insert(all_cores.end(), numa_node.cores.begin(), numa_node.cores.end());
      }
      ShareOut(all_cores, rank_order, cores_per_rank, &result);
      return result;
    }
  }
  for (std::size_t i = 0; i < ranks_of_numa.size(); ++i) {
    if (ranks_of_numa[i].empty()) continue;
    ShareOut(node.numa_nodes[i].cores, ranks_of_numa[i], cores_per_rank, &result);
  }
  return result;
}

}  // namespace launcher
