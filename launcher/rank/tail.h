// SPDX-License-Identifier: Apache-2.0
//
// The last lines of a rank, for the failure report.

#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace launcher {

class Tail {
 public:
  static constexpr std::size_t kLines = 10;
  static constexpr std::size_t kLineBytes = 400;

  // One line without its end; an empty one is passed over.
  void Add(std::string_view line) {
    if (line.empty()) return;
    if (lines_.size() == kLines) lines_.pop_front();
    lines_.emplace_back(line.substr(0, kLineBytes));
  }
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  std::deque<std::string> lines_;
};

}  // namespace launcher
