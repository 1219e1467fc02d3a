// SPDX-License-Identifier: Apache-2.0
//
// How ranks ended, where thousands may end at once: what is said of the first few is shown, of the
// others how many they are.  Pure.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/protocol/rank_end.h"

namespace launcher {

class EndCounts {
 public:
  // Lines about ends that the user sees.
  static constexpr int kShownLines = 8;
  // Ways to end that Text tells apart.
  static constexpr std::size_t kToldWays = 6;

  // Takes a line about ranks that ended as `end` did.  A rank counts once, as it was told of first.
  // Whether the line is shown.
  bool Add(const RankEnd& end, const std::vector<RankRange>& ranks);
  bool Add(const RankEnd& end) { return Add(end, {{end.rank, end.rank}}); }

  // "32768 ranks ended: 32767 with signal 9 (Killed), 1 with exit code 3; 8 lines about them are
  // above, 32760 were left out"; "" where no line was left out.
  std::string Text() const;

 private:
  std::vector<bool> is_counted_;     // by rank
  std::map<std::string, int> ways_;  // ranks by DescribeEnd
  int ranks_ = 0;
  int lines_ = 0;
};

}  // namespace launcher
