// SPDX-License-Identifier: Apache-2.0

#include "launcher/placement/segments.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace launcher {
namespace {

// "b1 (n1, n3) and b2 (n2)"
std::string BlocksText(const std::vector<std::pair<std::string, std::string>>& hosts_of_block) {
  std::string text;
  for (std::size_t i = 0; i < hosts_of_block.size(); ++i) {
    const bool is_last = i + 1 == hosts_of_block.size();
    if (i > 0) text += is_last ? " and " : ", ";
    text += hosts_of_block[i].first + " (" + hosts_of_block[i].second + ")";
  }
  return text;
}

}  // namespace

std::string TornSegment(const LaunchPlan& plan, int nodes_per_segment) {
  const std::size_t size = static_cast<std::size_t>(std::max(nodes_per_segment, 1));
  for (std::size_t first = 0; first < plan.nodes.size(); first += size) {
    const std::size_t end = std::min(first + size, plan.nodes.size());
    std::vector<std::pair<std::string, std::string>> hosts_of_block;
    for (std::size_t i = first; i < end; ++i) {
      const NodePlacement& node = plan.nodes[i];
      if (node.network.empty()) continue;
      const auto block =
          std::find_if(hosts_of_block.begin(), hosts_of_block.end(),
                       [&](const auto& known) { return known.first == node.network; });
      if (block == hosts_of_block.end()) {
        hosts_of_block.emplace_back(node.network, node.host);
      } else {
        block->second += ", " + node.host;
      }
    }
    if (hosts_of_block.size() < 2) continue;
    return "the segment of ranks " + std::to_string(plan.nodes[first].ranks.front()) + " to " +
           std::to_string(plan.nodes[end - 1].ranks.back()) +
           " is on several blocks: " + BlocksText(hosts_of_block);
  }
  return "";
}

}  // namespace launcher
