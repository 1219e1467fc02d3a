// SPDX-License-Identifier: Apache-2.0

#include "rankfile/placement_builder.h"

#include <algorithm>
#include <string>
#include <utility>

namespace rankfile {

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
