// SPDX-License-Identifier: Apache-2.0
//
// Output of a rank on its way to ddlrun's own: whole lines, so that those of two ranks do not mix.

#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "launcher/supervise/child_process.h"

namespace launcher {

// A line that is longer is passed on in parts.
inline constexpr std::size_t kMaxLineBytes = 65536;

class LineRelay {
 public:
  // Reads `from`, writes to `to` (not owned), `tag` in front of each line.  `on_line`, if any, is
  // called with each line without its end.
  LineRelay(Descriptor from, int to, std::string tag,
            std::function<void(std::string_view)> on_line);

  int fd() const { return from_.fd(); }
  bool is_open() const { return from_.is_open(); }

  // Passes on what is there now; at the end of the input also a last line without '\n', and closes.
  // A carriage return ends a line as well, so that a progress bar is seen moving.
  // False when nobody reads `to` any more.
  bool Relay();

 private:
  bool PassOn(std::size_t bytes);

  Descriptor from_;
  int to_;
  std::string tag_;
  std::function<void(std::string_view)> on_line_;
  std::string pending_;
};

// The last lines of a rank, for the failure report.
class Tail {
 public:
  static constexpr std::size_t kLines = 10;
  static constexpr std::size_t kLineBytes = 400;

  void Add(std::string_view line);
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  std::deque<std::string> lines_;
};

}  // namespace launcher
