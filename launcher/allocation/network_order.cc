// SPDX-License-Identifier: Apache-2.0

#include "launcher/allocation/network_order.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace launcher {
namespace {

// The position of a node in the tree of units, in which each unit has the number of its first node.
using Position = std::vector<std::size_t>;

// A node with a shorter path than others is in a unit without a name on the levels that it lacks.
Position PositionOf(const AllocatedNode& node, std::size_t levels, std::size_t number,
                    std::map<std::vector<std::string>, std::size_t>* first_of_unit) {
  Position position;
  std::vector<std::string> unit;
  for (std::size_t level = 0; level < levels; ++level) {
    unit.push_back(level < node.network_path.size() ? node.network_path[level] : "");
    position.push_back(first_of_unit->emplace(unit, number).first->second);
  }
  position.push_back(number);
  return position;
}

}  // namespace

void OrderByNetwork(const std::string& first, Allocation* allocation) {
  std::vector<AllocatedNode>& nodes = allocation->nodes;
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [&](const AllocatedNode& node) { return node.host == first; });
  if (found != nodes.end()) std::rotate(nodes.begin(), found, found + 1);
  std::size_t levels = 0;
  for (const AllocatedNode& node : nodes) levels = std::max(levels, node.network_path.size());
  std::map<std::vector<std::string>, std::size_t> first_of_unit;
  std::vector<std::pair<Position, AllocatedNode>> placed;
  for (std::size_t number = 0; number < nodes.size(); ++number) {
    Position position = PositionOf(nodes[number], levels, number, &first_of_unit);
    placed.emplace_back(std::move(position), std::move(nodes[number]));
  }
  std::sort(placed.begin(), placed.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t number = 0; number < nodes.size(); ++number) {
    nodes[number] = std::move(placed[number].second);
  }
}

std::string NetworkText(const AllocatedNode& node) {
  std::string text;
  for (const std::string& unit : node.network_path) text += (text.empty() ? "" : ".") + unit;
  return text;
}

}  // namespace launcher
