// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/exit_code_counts.h"

#include <algorithm>
#include <utility>

#include "support/counted.h"

namespace launcher {

bool ExitCodeCounts::Add(const RankExit& end, const std::vector<RankRange>& ranks) {
  int& count = ways_[DescribeEnd(end)];
  for (const RankRange& range : ranks) {
    const auto size = static_cast<std::size_t>(range.last) + 1;
    if (is_counted_.size() < size) is_counted_.resize(std::max(size, 2 * is_counted_.size()));
    for (int rank = range.first; rank <= range.last; ++rank) {
      if (is_counted_[static_cast<std::size_t>(rank)]) continue;
      is_counted_[static_cast<std::size_t>(rank)] = true;
      ++count;
      ++ranks_;
    }
  }
  return ++lines_ <= kShownLines;
}

std::string ExitCodeCounts::Text() const {
  if (lines_ <= kShownLines) return "";
  std::vector<std::pair<int, std::string>> ways;  // the most frequent one first
  for (const auto& [how, count] : ways_) {
    if (count > 0) ways.emplace_back(-count, how);
  }
  std::sort(ways.begin(), ways.end());
  std::string text = support::Counted(ranks_, "rank") + " ended: ";
  int left = ranks_;
  for (std::size_t i = 0; i < std::min(ways.size(), kReportedCounts); ++i) {
    const int count = -ways[i].first;
    left -= count;
    text += (i == 0 ? "" : ", ") + std::to_string(count) + " with " + ways[i].second;
  }
  if (left > 0) text += ", " + std::to_string(left) + " otherwise";
  return text + "; " + std::to_string(kShownLines) + " lines about them are above, " +
         std::to_string(lines_ - kShownLines) + " were left out";
}

}  // namespace launcher
