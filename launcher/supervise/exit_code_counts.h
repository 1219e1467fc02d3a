// SPDX-License-Identifier: Apache-2.0
//
// Counts how ranks ended, since thousands may end at once: the user sees the lines about the first
// few, and the number of the others.  Pure.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/protocol/rank_exit.h"

namespace launcher {

class ExitCodeCounts {
 public:
  // How many lines about the ends of ranks the user sees.
  static constexpr int kShownLines = 8;
  // How many ways to end Text tells apart; the others are counted together.
  static constexpr std::size_t kReportedCounts = 6;

  // Counts a line about `ranks`, which ended as `end` did.  A rank counts only once, by the first
  // line about it.  True when the user is to see the line.
  bool Add(const RankExit& end, const std::vector<RankRange>& ranks);
  bool Add(const RankExit& end) { return Add(end, {{end.rank, end.rank}}); }

  // "32768 ranks ended: 32767 with signal 9 (Killed), 1 with exit code 3; 8 lines about them are
  // above, 32760 were left out"; "" where no line was left out.
  std::string Text() const;

 private:
  std::vector<bool> is_counted_;     // by rank
  std::map<std::string, int> ways_;  // the number of ranks by DescribeEnd
  int ranks_ = 0;
  int lines_ = 0;
};

}  // namespace launcher
