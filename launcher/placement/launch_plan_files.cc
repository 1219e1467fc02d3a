// SPDX-License-Identifier: Apache-2.0

#include "launcher/placement/launch_plan_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "launcher/allocation/hosts_of_job.h"
#include "launcher/base/error.h"
#include "rankfile/cpu_list.h"
#include "rankfile/ddl.h"
#include "rankfile/hostfile.h"
#include "rankfile/openmpi_rankfile.h"
#include "rankfile/placement.h"
#include "rankfile/scanner.h"
#include "support/number.h"

namespace launcher {
namespace {

using support::Counted;

// The plan without cores.
rankfile::Placement ToPlacement(const LaunchPlan& plan) {
  rankfile::Placement placement;
  for (const RankPlacement& rank : plan.ranks) {
    placement.ranks.push_back({plan.nodes[rank.node].host, {}});
  }
  return placement;
}

const NodeTopology& TopologyOf(const NodePlacement& node,
                               const std::vector<NodeTopology>& topologies) {
  return topologies[topologies.size() == 1 ? 0 : node.allocated_node];
}

rankfile::CoreRange ToRange(const Core& core) {
  return {core.socket, core.core_in_socket, core.core_in_socket};
}

// A list of numbers as it stands in the table, "0-3"; "-" for none.
std::string ListOrDash(const std::vector<int>& numbers) {
  return numbers.empty() ? "-" : rankfile::FormatCpuList(numbers);
}

std::string NumberOrDash(int number) { return number < 0 ? "-" : std::to_string(number); }

// Rows of equal length as left-aligned columns, two blanks between them.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string RankfileText(const LaunchPlan& plan, const std::vector<NodeTopology>& topologies) {
  rankfile::Placement placement = ToPlacement(plan);
  for (const RankPlacement& rank : plan.ranks) {
    if (topologies.empty()) {
      placement.ranks[rank.rank].cores = {rankfile::CoreRange{}};
      continue;
    }
    const NodeTopology& node = TopologyOf(plan.nodes[rank.node], topologies);
    std::vector<rankfile::CoreRange> cores;
    for (const int core : rank.cores) cores.push_back(ToRange(node.cores[core]));
    if (rank.cores.empty()) {
      for (const Core& core : node.cores) cores.push_back(ToRange(core));
    }
    placement.ranks[rank.rank].cores = rankfile::NormalCores(std::move(cores));
  }
  try {
    return rankfile::FormatRankfile(placement);
  } catch (const std::invalid_argument& error) {
    throw LaunchError(EX_CONFIG,
                      std::string("the plan cannot be written as a rankfile: ") + error.what());
  }
}

std::string HostfileText(const LaunchPlan& plan) {
  std::vector<rankfile::HostfileEntry> entries;
  for (const NodePlacement& node : plan.nodes) {
    entries.push_back({node.host, static_cast<int>(node.ranks.size()), std::nullopt});
  }
  return rankfile::FormatHostfile(entries);
}

std::string DdlHostList(const LaunchPlan& plan) {
  return rankfile::FormatDdlHostList(ToPlacement(plan));
}

std::string DdlOptions(const LaunchPlan& plan) {
  rankfile::DdlOptions options;
  const std::size_t per_node = plan.nodes.front().ranks.size();
  const bool even =
      std::all_of(plan.nodes.begin(), plan.nodes.end(),
                  [&](const NodePlacement& node) { return node.ranks.size() == per_node; });
  if (even) {
    options.mode = plan.mode.front();
    options.gpus_per_node = static_cast<int>(per_node);
    options.nodes_per_rack = static_cast<int>(plan.nodes.size()) / (plan.racks * plan.aisles);
    options.racks_per_aisle = plan.racks;
    options.aisles = plan.aisles;
  } else {
    options.mode = 'r';
    options.gpus_per_node = static_cast<int>(plan.ranks.size());
  }
  return rankfile::FormatDdlOptions(options);
}

std::string PlanAsText(const LaunchPlan& plan) {
  std::vector<std::vector<std::string>> rows = {
      {"rank", "host", "local", "gpu", "memory", "cores", "cpus"}};
  for (const RankPlacement& rank : plan.ranks) {
    rows.push_back({std::to_string(rank.rank), plan.nodes[rank.node].host,
                    std::to_string(rank.local_rank), NumberOrDash(rank.gpu),
                    rank.numa_os_index < 0 ? "-" : "node " + std::to_string(rank.numa_os_index),
                    ListOrDash(rank.cores), ListOrDash(rank.cpus)});
  }
  if (!plan.network_unit.empty()) {
    constexpr int kBehindHost = 2;
    rows.front().insert(rows.front().begin() + kBehindHost, plan.network_unit);
    for (const RankPlacement& rank : plan.ranks) {
      std::vector<std::string>& row = rows[rank.rank + 1];
      const std::string& network = plan.nodes[rank.node].network;
      row.insert(row.begin() + kBehindHost, network.empty() ? "-" : network);
    }
  }
  std::string text = Counted(static_cast<long long>(plan.ranks.size()), "rank") + " on " +
                     Counted(static_cast<long long>(plan.nodes.size()), "node") + "\n" +
                     FormatTable(rows);
  const std::string host_list = DdlHostList(plan);
  if (host_list.size() <= kMaxHostListBytes) text += "DDL_HOST_LIST=" + host_list + "\n";
  text += "DDL_OPTIONS=" + DdlOptions(plan) + "\n";
  for (const std::string& warning : plan.warnings) text += warning + "\n";
  return text;
}

std::string PlanAsJson(const LaunchPlan& plan) {
  using Json = nlohmann::ordered_json;
  Json ranks = Json::array();
  for (const RankPlacement& rank : plan.ranks) {
    Json entry;
    entry["rank"] = rank.rank;
    entry["host"] = plan.nodes[rank.node].host;
    entry["node"] = rank.node;
    entry["local_rank"] = rank.local_rank;
    entry["gpu"] = rank.gpu < 0 ? Json() : Json(rank.gpu);
    entry["numa_os_index"] = rank.numa_os_index < 0 ? Json() : Json(rank.numa_os_index);
    entry["cores"] = rankfile::FormatCpuList(rank.cores);
    entry["cpus"] = rankfile::FormatCpuList(rank.cpus);
    ranks.push_back(std::move(entry));
  }
  Json nodes = Json::array();
  for (const NodePlacement& node : plan.nodes) {
    nodes.push_back({{"host", node.host}, {"ranks", node.ranks}});
    if (!node.network.empty()) nodes.back()[plan.network_unit] = node.network;
  }
  Json json;
  json["format"] = "ddlrun-plan-1";
  json["ranks"] = std::move(ranks);
  json["nodes"] = std::move(nodes);
  json["mode"] = plan.mode;
  json["racks"] = plan.racks;
  json["aisles"] = plan.aisles;
  json["ddl_host_list"] = DdlHostList(plan);
  json["ddl_options"] = DdlOptions(plan);
  json["warnings"] = plan.warnings;
  return json.dump(2) + "\n";
}

LaunchPlan PlanFromRankfile(const std::string& text, const std::string& name) {
  try {
    const rankfile::Placement placement = rankfile::ParseRankfile(text, name);
    if (placement.ranks.empty()) {
      throw LaunchError(EX_DATAERR, name + ": no rank in it; write 'rank 0=host slot=0:0-9'");
    }
    LaunchPlan plan;
    plan.ranks.resize(placement.ranks.size());
    for (const rankfile::HostRanks& host : rankfile::RanksByHost(placement)) {
      for (std::size_t local = 0; local < host.ranks.size(); ++local) {
        RankPlacement& rank = plan.ranks[static_cast<std::size_t>(host.ranks[local])];
        rank.rank = host.ranks[local];
        rank.node = static_cast<int>(plan.nodes.size());
        rank.local_rank = static_cast<int>(local);
      }
      NodePlacement node;
      node.host = host.host;
      node.ranks = host.ranks;
      plan.nodes.push_back(node);
    }
    return plan;
  } catch (const rankfile::ParseError& error) {
    throw LaunchError(EX_DATAERR, error.what());
  }
}

std::string WithHostsOfJob(const std::string& text, const std::string& name,
                           const Allocation& job) {
  try {
    rankfile::Placement placement = rankfile::ParseRankfile(text, name);
    const HostsOfJob hosts(job);
    bool is_other = false;
    for (rankfile::PlacedRank& rank : placement.ranks) {
      const std::string& host = hosts.Require(rank.host, name).host;
      is_other = is_other || host != rank.host;
      rank.host = host;
    }
    return is_other ? rankfile::FormatRankfile(placement) : "";
  } catch (const rankfile::ParseError& error) {
    throw LaunchError(EX_DATAERR, error.what());
  } catch (const std::invalid_argument& error) {
    throw LaunchError(EX_DATAERR, name + ": " + error.what());
  }
}

}  // namespace launcher
