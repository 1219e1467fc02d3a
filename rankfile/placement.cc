// SPDX-License-Identifier: Apache-2.0

#include "rankfile/placement.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "rankfile/host_name.h"

namespace rankfile {
namespace {

bool InLimits(const CoreRange& range) {
  if (range.last == kEveryCore) {
    return range.first == 0 && range.socket >= 0 && range.socket <= kMaxSocket;
  }
  return range.socket >= kWholeNode && range.socket <= kMaxSocket && range.first >= 0 &&
         range.first <= range.last && range.last <= kMaxCore;
}

// What is wrong with the cores of one rank beside `model`, the first rank's; "" when nothing is.
std::string ProblemOfCores(const std::vector<CoreRange>& cores,
                           const std::vector<CoreRange>& model) {
  if (cores.empty() != model.empty()) {
    return "some ranks have cores and others have none; give them to all or to none";
  }
  for (const CoreRange& range : cores) {
    if (!InLimits(range)) return "a core range is backwards or out of limits";
    if ((range.socket == kWholeNode) != (model[0].socket == kWholeNode)) {
      return "slots are written as socket:core in one place and as core in another; use one form, "
             "as in slot=0:0-9";
    }
  }
  if (NormalCores(cores) != cores) return "the core ranges are not ascending and apart";
  return "";
}

}  // namespace

std::optional<PlacementProblem> FindProblem(const Placement& placement) {
  if (placement.ranks.size() > static_cast<std::size_t>(kMaxRanks)) {
    return PlacementProblem{.rank = kMaxRanks,
                            .message = "more than " + std::to_string(kMaxRanks) + " ranks"};
  }
  HostSpellings spellings;
  for (std::size_t i = 0; i < placement.ranks.size(); ++i) {
    const PlacedRank& placed = placement.ranks[i];
    std::string message;
    if (!IsHostName(placed.host)) {
      message = "'" + placed.host + "' is not a host name";
    } else if (const std::string* other = spellings.Add(placed.host)) {
      message = placed.host + " and " + *other + " are one host spelled in two ways; use one";
    } else {
      message = ProblemOfCores(placed.cores, placement.ranks[0].cores);
    }
    if (!message.empty()) {
      return PlacementProblem{.rank = static_cast<int>(i), .message = std::move(message)};
    }
  }
  return std::nullopt;
}

void RequireValid(const Placement& placement) {
  if (const auto problem = FindProblem(placement)) {
    throw std::invalid_argument("rank " + std::to_string(problem->rank) + ": " + problem->message);
  }
}

std::vector<CoreRange> NormalCores(std::vector<CoreRange> cores) {
  std::sort(cores.begin(), cores.end(), [](const CoreRange& a, const CoreRange& b) {
    return std::tie(a.socket, a.first, a.last) < std::tie(b.socket, b.first, b.last);
  });
  std::vector<CoreRange> normal;
  for (const CoreRange& range : cores) {
    // first - 1 and not last + 1, which overflows for kEveryCore.
    if (!normal.empty() && normal.back().socket == range.socket &&
        range.first - 1 <= normal.back().last) {
      normal.back().last = std::max(normal.back().last, range.last);
    } else {
      normal.push_back(range);
    }
  }
  return normal;
}

std::vector<HostRanks> RanksByHost(const Placement& placement) {
  std::vector<HostRanks> hosts;
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < placement.ranks.size(); ++i) {
    const std::string& host = placement.ranks[i].host;
    const auto [known, is_new] = index.try_emplace(host, hosts.size());
    if (is_new) hosts.push_back({.host = host, .ranks = {}});
    hosts[known->second].ranks.push_back(static_cast<int>(i));
  }
  return hosts;
}

void PlacementBuilder::Add(int rank, PlacedRank placed, Position where) {
  entries_.push_back({.rank = rank, .placed = std::move(placed), .where = where});
}

Placement PlacementBuilder::Finish(const Scanner& scanner) {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.rank < b.rank; });
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (i > 0 && entry.rank == entries_[i - 1].rank) {
      const Position first = entries_[i - 1].where;
      scanner.FailAt(entry.where, "rank " + std::to_string(entry.rank) + " is already given at " +
                                      std::to_string(first.line) + ":" +
                                      std::to_string(first.column));
    }
    if (entry.rank != static_cast<int>(i)) {
      scanner.FailAt(entry.where, "rank " + std::to_string(entry.rank) + " is here, but rank " +
                                      std::to_string(i) + " is nowhere; number the ranks from 0 " +
                                      "without gaps");
    }
  }
  Placement placement;
  placement.ranks.reserve(entries_.size());
  for (Entry& entry : entries_) placement.ranks.push_back(std::move(entry.placed));
  if (const auto problem = FindProblem(placement)) {
    scanner.FailAt(entries_[static_cast<std::size_t>(problem->rank)].where, problem->message);
  }
  return placement;
}

}  // namespace rankfile
