// SPDX-License-Identifier: Apache-2.0
//
// Keeps the last lines of a rank for the failure report.

#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>

#include "launcher/protocol/rank_event.h"

namespace launcher {

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

}  // namespace launcher
