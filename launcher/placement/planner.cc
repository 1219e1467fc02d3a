// SPDX-License-Identifier: Apache-2.0
#include "launcher/placement/planner.h"

#include <algorithm>
#include <map>
#include <utility>

#include "launcher/allocation/network_order.h"
#include "launcher/base/error.h"
#include "launcher/base/messages.h"
#include "launcher/placement/node_binding.h"
#include "launcher/placement/rank_counts.h"
#include "rankfile/hostlist.h"
#include "support/number.h"

namespace launcher {
namespace {

using support::Counted;
using support::Size;

// Warnings that several nodes share are said once, for all of them.
class Warnings {
 public:
  void Add(Message message, const std::string& host, const std::string& text) {
    auto found = std::find_if(entries_.begin(), entries_.end(),
                              [&](const Entry& entry) { return entry.text == text; });
    if (found == entries_.end()) found = entries_.insert(found, Entry{message, text, {}});
    found->hosts.push_back(host);
  }

  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (const Entry& entry : entries_) {
      lines.push_back(
          Coded(entry.message, rankfile::CompressHostlist(entry.hosts) + ": " + entry.text));
    }
    return lines;
  }

 private:
  struct Entry {
    Message message;
    std::string text;
    std::vector<std::string> hosts;
  };
  std::vector<Entry> entries_;
};

void RequirePositive(std::optional<int> value, const std::string& what, int min = 1) {
  if (value && *value < min) {
    throw LaunchError(EX_USAGE, what + " " + std::to_string(*value) + ": write a number from " +
                                    std::to_string(min));
  }
}

void CheckOptions(const PlacementOptions& options) {
  RequirePositive(options.ranks, "number of ranks (-n)");
  RequirePositive(options.ranks_per_node, "ranks per node");
  RequirePositive(options.gpus_per_node, "--accelerators", 0);
  if (options.gpus_per_node && *options.gpus_per_node > kMaxGpusPerNode) {
    throw LaunchError(EX_USAGE, "--accelerators " + std::to_string(*options.gpus_per_node) +
                                    ": write a number up to " + std::to_string(kMaxGpusPerNode));
  }
  RequirePositive(options.cpus_per_rank, "CPUs per rank");
  RequirePositive(options.nodes_per_rack, "--nodes");
  RequirePositive(options.racks, "--racks");
  RequirePositive(options.aisles, "--aisles");
  if (options.mode.size() != 1 || std::string("bnrmcp").find(options.mode) == std::string::npos) {
    throw LaunchError(EX_USAGE, "--mode " + options.mode +
                                    " is no DDL mode: write one of b, n, r, m, c, p (default p)");
  }
}

// Gives ranks to the nodes of `plan` in turn, `counts` each, in the order asked for.
void NumberRanks(const std::vector<int>& counts, RankOrder order, LaunchPlan* plan) {
  const auto add = [&](int node) {
    std::vector<int>& on_node = plan->nodes[node].ranks;
    RankPlacement rank;
    rank.rank = static_cast<int>(plan->ranks.size());
    rank.node = node;
    rank.local_rank = Size(on_node);
    on_node.push_back(rank.rank);
    plan->ranks.push_back(std::move(rank));
  };
  if (order == RankOrder::kByNode) {
    for (int node = 0; node < Size(counts); ++node) {
      for (int i = 0; i < counts[node]; ++i) add(node);
    }
    return;
  }
  const int rounds = *std::max_element(counts.begin(), counts.end());
  for (int round = 0; round < rounds; ++round) {
    for (int node = 0; node < Size(counts); ++node) {
      if (counts[node] > round) add(node);
    }
  }
}

void CheckRacks(const PlacementOptions& options, LaunchPlan* plan) {
  const int node_count = static_cast<int>(plan->nodes.size());
  const long long racks = static_cast<long long>(options.racks) * options.aisles;
  const long long nodes_per_rack =
      options.nodes_per_rack.value_or(static_cast<int>(std::max(1LL, node_count / racks)));
  if (nodes_per_rack * racks != node_count) {
    throw LaunchError(EX_USAGE,
                      "--nodes " + std::to_string(nodes_per_rack) + " --racks " +
                          std::to_string(options.racks) + " --aisles " +
                          std::to_string(options.aisles) + " make " +
                          std::to_string(nodes_per_rack * racks) + " nodes, but ranks are on " +
                          std::to_string(node_count) +
                          ": these are IBM's nodes of a rack; how many nodes there are is "
                          "for the job to say (#SBATCH --nodes=2)");
  }
  plan->mode = options.mode;
  plan->racks = options.racks;
  plan->aisles = options.aisles;
}

// What the user should know about the GPUs of a node that runs `ranks` ranks.
void WarnAboutGpus(const NodeResources& node, int ranks, const AllocatedNode& allocated,
                   const PlacementOptions& options, Warnings* warnings) {
  const int ours = Size(node.gpus);
  const int seen = node.topology != nullptr ? static_cast<int>(node.topology->gpus.size()) : ours;
  const bool are_seen =
      std::all_of(node.gpus.begin(), node.gpus.end(), [seen](int gpu) { return gpu < seen; });
  if (!are_seen) {
    warnings->Add(Message::kGpusNotSeen, node.host,
                  Counted(ours, "GPU") + " granted, but hwloc sees " + std::to_string(seen) +
                      "; cores are split without regard to GPUs");
  }
  if (ours == 0 && seen > 0 && allocated.gpus == 0 && !options.gpus_per_node) {
    warnings->Add(Message::kGpusNotRequested, node.host,
                  "has " + Counted(seen, "GPU") +
                      " but the job was granted none; to use them write #SBATCH --gres=gpu:" +
                      std::to_string(seen));
  }
  if (ranks > ours && ours > 0) {
    warnings->Add(Message::kGpusShared, node.host,
                  Counted(ranks, "rank") + " share " + Counted(ours, "GPU"));
  }
}

// Fills in gpu, cores, cpus and memory of the ranks of one node.
void BindNode(const NodeResources& resources, const std::vector<int>& ranks,
              const PlacementOptions& options, LaunchPlan* plan, Warnings* warnings) {
  std::vector<RankPlacement*> own;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    RankPlacement& rank = plan->ranks[ranks[i]];
    rank.gpu = resources.gpus.empty() ? -1 : resources.gpus[i % resources.gpus.size()];
    own.push_back(&rank);
  }
  if (!options.bind || resources.topology == nullptr) return;
  const std::string shortage =
      BindRanks(*resources.topology, plan->cpus_per_rank, plan->cpus_are_cores, own);
  if (shortage.empty()) return;
  if (options.cpus_per_rank && !options.oversubscribe) {
    throw LaunchError(EX_CONFIG, resources.host + ": " + shortage +
                                     ": ask for less CPUs per rank, or add --oversubscribe");
  }
  warnings->Add(Message::kNotBound, resources.host, shortage + ", so they are not bound");
}

}  // namespace

LaunchPlan MakePlan(const Allocation& allocation, const std::vector<NodeTopology>& topologies,
                    const PlacementOptions& options) {
  CheckOptions(options);
  const std::vector<NodeResources> nodes = FindResources(allocation, topologies, options);
  const std::vector<int> counts = CountRanks(allocation, nodes, options);

  LaunchPlan plan;
  plan.network_unit = allocation.network_unit;
  plan.cpus_per_rank = options.cpus_per_rank ? options.cpus_per_rank : allocation.cpus_per_rank;
  plan.cpus_are_cores = allocation.cpus_are_cores && !options.cpus_per_rank;
  std::vector<int> used_counts;
  for (int i = 0; i < Size(counts); ++i) {
    if (counts[i] == 0) continue;
    NodePlacement node;
    node.host = nodes[i].host;
    node.network = NetworkText(allocation.nodes[i]);
    node.allocated_node = i;
    node.component = allocation.nodes[i].component;
    node.gpus = nodes[i].granted;
    plan.nodes.push_back(std::move(node));
    used_counts.push_back(counts[i]);
  }
  NumberRanks(used_counts, options.order, &plan);
  CheckRacks(options, &plan);

  Warnings warnings;
  for (const NodePlacement& used : plan.nodes) {
    const NodeResources& node = nodes[used.allocated_node];
    WarnAboutGpus(node, Size(used.ranks), allocation.nodes[used.allocated_node], options,
                  &warnings);
    BindNode(node, used.ranks, options, &plan, &warnings);
  }
  plan.warnings = warnings.Lines();
  return plan;
}

}  // namespace launcher
