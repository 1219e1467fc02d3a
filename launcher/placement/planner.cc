// SPDX-License-Identifier: Apache-2.0

#include "launcher/placement/planner.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "launcher/allocation/network_order.h"
#include "launcher/base/error.h"
#include "launcher/base/messages.h"
#include "launcher/placement/node_binding.h"
#include "rankfile/hostlist.h"
#include "rankfile/placement.h"
#include "support/number.h"

namespace launcher {
namespace {

using support::Counted;
using support::Size;

// Which GPUs of each node the job may use, and how many ranks the node runs.

// What planning knows about one node of the allocation.
struct NodeResources {
  std::string host;
  const NodeTopology* topology = nullptr;  // nullptr: not known
  int granted = 0;                         // GPUs that the job has there
  std::vector<int> gpus;                   // that ranks may use; indices into topology->gpus
  bool gpus_known = false;                 // false: nobody says how many, `gpus` is empty
  std::optional<int> slots;                // ranks asked for on this node
};

int GpusSeen(const NodeResources& node) {
  return node.topology != nullptr ? static_cast<int>(node.topology->gpus.size()) : 0;
}

// Which `count` GPUs: those that the scheduler or the user names, else the first.
std::vector<int> ChooseGpus(int count, const std::vector<int>& named, int seen) {
  if (Size(named) >= count &&
      std::all_of(named.begin(), named.end(), [&](int i) { return i < std::max(seen, count); })) {
    return {named.begin(), named.begin() + count};
  }
  std::vector<int> first(count);
  std::iota(first.begin(), first.end(), 0);
  return first;
}

NodeResources FindNodeResources(const Allocation& allocation, std::size_t index,
                                const NodeTopology* topology, bool like_first,
                                const PlacementOptions& options) {
  const AllocatedNode& allocated = allocation.nodes[index];
  const AllocatedNode& first = allocation.nodes.front();
  NodeResources node;
  node.host = allocated.host;
  node.topology = topology;
  node.slots = allocated.slots;
  if (options.ranks_per_node) node.slots = options.ranks_per_node;

  const bool same_as_first = like_first && allocated.component == first.component;
  const AllocatedNode& granted = !allocated.gpus && same_as_first ? first : allocated;
  std::optional<int> count = granted.gpus;
  node.granted = count.value_or(0);
  if (!count) count = granted.gpus_visible;
  if (options.gpus_per_node) {
    if (count && *options.gpus_per_node > *count) {
      throw LaunchError(
          EX_CONFIG,
          node.host + ": " + std::to_string(*options.gpus_per_node) +
              " GPUs per node asked for, but " +
              (granted.gpus ? "the job was granted " + std::to_string(*count) + " (" +
                                  allocation.origin_text + "): write #SBATCH --gres=gpu:" +
                                  std::to_string(*options.gpus_per_node)
                            : "CUDA_VISIBLE_DEVICES leaves " + std::to_string(*count) +
                                  ": name more in it") +
              ", or --accelerators " + std::to_string(*count));
    }
    count = options.gpus_per_node;
  }
  // On a node of another component it is not known how many GPUs were granted, only how many ranks
  // it runs.
  if (!count && like_first && !same_as_first && node.slots) {
    count = std::min(*node.slots, GpusSeen(node));
  } else if (!count && topology != nullptr && (!like_first || same_as_first)) {
    count = GpusSeen(node);
  }
  node.gpus_known = count.has_value();
  node.gpus = ChooseGpus(count.value_or(0), granted.gpu_indices, GpusSeen(node));
  const bool has_slots_for_cores = allocation.slots_may_be_cores && !options.ranks_per_node;
  if (has_slots_for_cores && !node.gpus.empty()) node.slots.reset();
  return node;
}

// How many ranks `node` takes at most without --oversubscribe, where the total is given.
int Limit(const NodeResources& node, std::optional<int> cpus_per_rank, bool cpus_are_cores) {
  if (node.slots) return *node.slots;
  if (!node.gpus.empty()) return Size(node.gpus);
  if (node.topology == nullptr) return 1;
  const int cores = static_cast<int>(node.topology->cores.size());
  return std::max(
      1, cores / (cpus_per_rank ? CoresFor(*cpus_per_rank, cpus_are_cores, *node.topology) : 1));
}

// How many ranks `node` takes where no total is given.  `is_for_others`: AreForOtherPrograms.
int Wanted(const NodeResources& node, bool is_for_others) {
  if (node.slots) return *node.slots;
  return is_for_others ? 0 : std::max(1, Size(node.gpus));
}

// Of each node, whether it is of a component of a heterogeneous job that has asked neither for GPUs
// nor for tasks, while another has GPUs: such nodes are for services beside the training, and a
// rank there would have no GPU in a world of ranks that have one.
std::vector<bool> AreForOtherPrograms(const Allocation& allocation,
                                      const std::vector<NodeResources>& nodes) {
  std::set<int> with_gpus;  // components
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].gpus.empty()) with_gpus.insert(allocation.nodes[i].component);
  }
  std::vector<bool> are_for_others;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::size_t own = with_gpus.count(allocation.nodes[i].component);
    are_for_others.push_back(!nodes[i].slots && nodes[i].gpus.empty() && with_gpus.size() > own);
  }
  return are_for_others;
}

// Fills the nodes with `total` ranks one after the other; those that do not fit are then dealt out
// to the nodes in turn.
std::vector<int> Fill(int total, const std::vector<int>& limits) {
  std::vector<int> counts;
  int left = total;
  for (const int limit : limits) {
    counts.push_back(std::min(limit, left));
    left -= counts.back();
  }
  for (std::size_t i = 0; left > 0; i = (i + 1) % counts.size(), --left) ++counts[i];
  return counts;
}

// The sbatch line for `total` ranks, where the nodes have room for `limit_sum`.
std::string MemoryAdvice(const Allocation& allocation, const std::vector<NodeResources>& nodes,
                         int total, long long limit_sum) {
  if (allocation.job_id.empty() || limit_sum == 0) return "";
  const auto node_count = static_cast<long long>(nodes.size());
  const auto per_node = static_cast<int>((total + node_count - 1) / node_count);
  const std::string more_nodes =
      "write #SBATCH --nodes=" + std::to_string((total * node_count + limit_sum - 1) / limit_sum);
  if (nodes.front().slots)
    return more_nodes + " or --ntasks-per-node=" + std::to_string(per_node) + ", ";
  if (nodes.front().gpus.empty()) return more_nodes + ", ";
  return more_nodes + " or --gres=gpu:" + std::to_string(per_node) + ", ";
}

void RejectMoreRanksThanGpus(const NodeResources& node, int ranks) {
  const int gpus = Size(node.gpus);
  if (gpus == 0 || ranks <= gpus) return;
  throw LaunchError(EX_CONFIG,
                    node.host + ": " + Counted(ranks, "rank") + " for " + Counted(gpus, "GPU") +
                        ": write #SBATCH --gres=gpu:" + std::to_string(ranks) +
                        " or #SBATCH --ntasks-per-node=" + std::to_string(gpus) +
                        "; or let ranks share GPUs with --oversubscribe, or run without GPUs with "
                        "--accelerators 0");
}

// Whoever asks for fewer tasks than GPUs has most often copied the line from another script; the
// job would be charged for all of its GPUs.
void RejectIdleGpus(const Allocation& allocation, const NodeResources& node, int ranks,
                    long long total) {
  const int gpus = Size(node.gpus);
  if (ranks >= gpus) return;
  throw LaunchError(EX_CONFIG,
                    node.host + ": " + Counted(ranks, "rank") + " for " + Counted(gpus, "GPU") +
                        ", because the job asks for as many tasks (" + allocation.origin_text +
                        "): write #SBATCH --ntasks-per-node=" + std::to_string(gpus) +
                        ", or leave --ntasks and --ntasks-per-node out; ranks that use several "
                        "GPUs each are asked for with ddlrun -n " +
                        std::to_string(total) + ", fewer GPUs with --accelerators " +
                        std::to_string(ranks) + kMaybeInherited);
}

// Whoever asks for neither GPUs nor tasks on nodes with GPUs has most often forgotten the GPUs.
void RejectForgottenGpus(const Allocation& allocation, const NodeResources& node) {
  const int there = std::max(GpusSeen(node), allocation.gpus_per_node_unasked);
  if (!node.gpus.empty() || node.slots || there == 0) return;
  throw LaunchError(EX_CONFIG, node.host + " has " + Counted(there, "GPU") +
                                   ", but the job was granted none (" + allocation.origin_text +
                                   "): write #SBATCH --gres=gpu:" + std::to_string(there) +
                                   "; ranks without GPUs are asked for with ddlrun -n N or "
                                   "--accelerators 0");
}

// One entry per node of `allocation`, in its order.  See MakePlan.
std::vector<NodeResources> FindResources(const Allocation& allocation,
                                         const std::vector<NodeTopology>& topologies,
                                         const PlacementOptions& options) {
  const bool like_first = topologies.size() == 1;
  if (topologies.size() > 1 && topologies.size() != allocation.nodes.size()) {
    throw LaunchError(EX_SOFTWARE,
                      std::to_string(static_cast<int>(topologies.size())) + " topologies for " +
                          std::to_string(static_cast<int>(allocation.nodes.size())) + " nodes");
  }
  std::vector<NodeResources> nodes;
  for (std::size_t i = 0; i < allocation.nodes.size(); ++i) {
    const NodeTopology* topology = topologies.empty() ? nullptr : &topologies[like_first ? 0 : i];
    nodes.push_back(FindNodeResources(allocation, i, topology, like_first, options));
    if (!nodes.back().gpus_known && !nodes.back().slots) {
      throw LaunchError(EX_CONFIG, nodes.back().host + ": nobody says how many GPUs the job has (" +
                                       allocation.origin_text +
                                       "): ask for --gpus-per-node=N instead of --gres, or give "
                                       "ddlrun --accelerators N");
    }
  }
  return nodes;
}

// Ranks of each node of `nodes`; 0 for a node that is left out.  Throws as MakePlan does.
std::vector<int> CountRanks(const Allocation& allocation, const std::vector<NodeResources>& nodes,
                            const PlacementOptions& options) {
  std::optional<int> total = options.ranks;
  if (!total && !options.ranks_per_node) total = allocation.ranks;
  const std::optional<int> cpus_per_rank =
      options.cpus_per_rank ? options.cpus_per_rank : allocation.cpus_per_rank;
  const bool cpus_are_cores = allocation.cpus_are_cores && !options.cpus_per_rank;

  const std::vector<bool> are_for_others = AreForOtherPrograms(allocation, nodes);
  std::vector<int> counts;
  long long limit_sum = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    counts.push_back(total ? Limit(nodes[i], cpus_per_rank, cpus_are_cores)
                           : Wanted(nodes[i], are_for_others[i]));
    limit_sum += counts.back();
  }
  const long long ranks = total ? *total : limit_sum;
  if (ranks > rankfile::kMaxRanks) {
    throw LaunchError(EX_USAGE, std::to_string(ranks) + " ranks: at most " +
                                    std::to_string(rankfile::kMaxRanks) + " are possible");
  }
  if (total) {
    if (ranks > limit_sum && !options.oversubscribe) {
      throw LaunchError(
          EX_CONFIG,
          Counted(*total, "rank") + " asked for, but there is room for " +
              std::to_string(limit_sum) + " on " + Counted(static_cast<int>(nodes.size()), "node") +
              " (" + allocation.origin_text + "; a rank takes a slot, else a GPU, else a core): " +
              MemoryAdvice(allocation, nodes, *total, limit_sum) + "ask for less with -n " +
              std::to_string(limit_sum) + ", or add --oversubscribe");
    }
    counts = Fill(*total, counts);
  }
  for (std::size_t i = 0; i < nodes.size() && !options.oversubscribe; ++i) {
    RejectMoreRanksThanGpus(nodes[i], counts[i]);
  }
  const bool is_left_to_slurm = allocation.origin == Allocation::Origin::kSlurm && !options.ranks &&
                                !options.ranks_per_node && !options.gpus_per_node;
  for (std::size_t i = 0; i < nodes.size() && is_left_to_slurm; ++i) {
    RejectIdleGpus(allocation, nodes[i], counts[i], ranks);
    if (!are_for_others[i]) RejectForgottenGpus(allocation, nodes[i]);
  }
  return counts;
}

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
  Warnings warnings;
  std::vector<int> used_counts;
  for (int i = 0; i < Size(counts); ++i) {
    if (counts[i] == 0 && !options.ranks && !allocation.ranks) {
      warnings.Add(Message::kComponentWithoutGpus, nodes[i].host,
                   "no ranks: this component of the heterogeneous job has asked for no GPUs; "
                   "-H HOST:N,... starts ranks there too");
    }
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
