// SPDX-License-Identifier: Apache-2.0
//
// What the user is told when a job has failed.  The last line names the rank that failed first,
// because people read logs from their end.  Pure.

#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/protocol/rank_event.h"
#include "launcher/protocol/rank_exit.h"

namespace launcher {

// Counts how ranks ended, since thousands may end at once: the user sees the lines about the first
// few, and the number of the others.  Pure.
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

// Keeps the last lines of a rank for the failure report.
class Tail {
 public:
  // Adds a line without its end.  An empty line is left out.
  void Add(std::string_view line) {
    if (line.empty()) return;
    if (lines_.size() == kReportedLines) lines_.pop_front();
    lines_.emplace_back(line.substr(0, kReportedLineBytes));
  }
  bool EndsWith(const Tail& end) const {
    return end.lines_.size() <= lines_.size() &&
           std::equal(end.lines_.rbegin(), end.lines_.rend(), lines_.rbegin());
  }
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  std::deque<std::string> lines_;
};

// The last of `lines` that speaks of an error, without blanks around it and cut where it is long;
// "" where none does.
std::string ErrorLineOf(const Tail& lines);

struct RankFailure : RankExit {
  double seconds = 0;  // from the start of the job until ddlrun saw the failure
  std::vector<std::string> last_lines;
  std::string error_line;         // of its last lines, shown or not: that of ErrorLineOf
  bool may_be_of_cancel = false;  // it was killed in the moment in which Slurm cancelled the step
  std::string others;             // how the other ranks ended: the text of ExitCodeCounts
};

// Lines, each ended by '\n' and starting with "ddlrun: ".
std::string FailureReport(const RankFailure& failure);

}  // namespace launcher
