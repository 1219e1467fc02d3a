// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_allocation.h"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/base/error.h"
#include "rankfile/host_name.h"
#include "rankfile/hostfile.h"
#include "rankfile/hostlist.h"
#include "rankfile/placement.h"
#include "rankfile/scanner.h"
#include "support/number.h"

namespace launcher {
namespace {

constexpr const char* kExample = ": write hosts as in -H gpu01,gpu02:4,node[1-8]:2";

[[noreturn]] void Reject(std::size_t column, const std::string& message) {
  throw LaunchError(EX_USAGE, "-H, column " + std::to_string(column) + ": " + message + kExample);
}

// Where the part of `text` that begins at `start` ends: the next comma outside brackets.
std::size_t FindPartEnd(std::string_view text, std::size_t start) {
  int depth = 0;
  for (std::size_t i = start; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']') --depth;
    if (text[i] == ',' && depth <= 0) return i;
  }
  return text.size();
}

// The hosts of one part, "node[1-8]:2", that begins at `column`, and their slots.
std::pair<std::vector<std::string>, std::optional<int>> ParsePart(std::string_view part,
                                                                  std::size_t column) {
  std::optional<int> slots;
  if (rankfile::LooksLikeIpv6(part)) Reject(column, rankfile::kNoIpv6);
  const std::size_t colon = part.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view number = part.substr(colon + 1);
    const int value = support::WholeNumber<int>(number).value_or(0);
    if (value < 1 || value > rankfile::kMaxRanks) {
      Reject(column + colon + 1, "slots are a number from 1");
    }
    slots = value;
    part = part.substr(0, colon);
  }
  try {
    std::vector<std::string> hosts = rankfile::ExpandHostlist(part, "-H");
    if (hosts.empty()) Reject(column, "a host is missing");
    return {std::move(hosts), slots};
  } catch (const rankfile::ParseError& error) {
    Reject(column + static_cast<std::size_t>(error.where().column) - 1, error.message());
  }
}

}  // namespace

Allocation AllocationFromHostList(const std::string& text) {
  Allocation allocation;
  allocation.origin = Allocation::Origin::kHostList;
  allocation.origin_text = "-H " + text.substr(0, 120) + (text.size() > 120 ? "..." : "");
  std::map<std::string, std::size_t> index_of_host;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = FindPartEnd(text, start);
    const auto [hosts, slots] =
        ParsePart(std::string_view(text).substr(start, end - start), start + 1);
    for (const std::string& host : hosts) {
      const auto [found, is_new] = index_of_host.emplace(host, allocation.nodes.size());
      if (is_new) {
        AllocatedNode node;
        node.host = host;
        node.slots = slots;
        allocation.nodes.push_back(std::move(node));
      } else {
        std::optional<int>& sum = allocation.nodes[found->second].slots;
        const long long more = 1LL * sum.value_or(1) + slots.value_or(1);
        if (more > rankfile::kMaxRanks) Reject(start + 1, "too many slots on " + host);
        sum = static_cast<int>(more);
      }
      if (allocation.nodes.size() > rankfile::kMaxHosts) Reject(start + 1, "too many hosts");
    }
    start = end + 1;
  }
  return allocation;
}

Allocation AllocationFromHostfile(const std::string& text, const std::string& file_name) {
  Allocation allocation;
  allocation.origin = Allocation::Origin::kHostfile;
  allocation.origin_text = "-hostfile " + file_name;
  try {
    for (const rankfile::HostfileEntry& entry : rankfile::ParseHostfile(text, file_name)) {
      AllocatedNode node;
      node.host = entry.host;
      node.slots = entry.slots;
      allocation.nodes.push_back(std::move(node));
    }
  } catch (const rankfile::ParseError& error) {
    throw LaunchError(EX_DATAERR, error.what());
  }
  return allocation;
}

Allocation AllocationOfThisMachine(const std::string& host_name) {
  Allocation allocation;
  allocation.origin = Allocation::Origin::kThisMachine;
  allocation.origin_text = "this machine";
  AllocatedNode node;
  node.host = host_name;
  allocation.nodes.push_back(std::move(node));
  return allocation;
}

}  // namespace launcher
