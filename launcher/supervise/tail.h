// SPDX-License-Identifier: Apache-2.0
//
// The last lines of a rank, for the failure report, as ddlrun keeps them.

#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "launcher/protocol/rank_report.h"

namespace launcher {

class Tail {
 public:
  // One line without its end; an empty one is passed over.
  void Add(std::string_view line) {
    if (line.empty()) return;
    if (lines_.size() == kReportedLines) lines_.pop_front();
    lines_.emplace_back(line.substr(0, kReportedLineBytes));
  }
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  std::deque<std::string> lines_;
};

}  // namespace launcher
