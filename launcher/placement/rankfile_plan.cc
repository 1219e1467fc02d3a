// SPDX-License-Identifier: Apache-2.0

#include "launcher/placement/rankfile_plan.h"

#include <stdexcept>

#include "launcher/allocation/hosts_of_job.h"
#include "launcher/base/error.h"
#include "rankfile/openmpi_rankfile.h"
#include "rankfile/scanner.h"

namespace launcher {

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
