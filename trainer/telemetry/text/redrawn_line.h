// SPDX-License-Identifier: Apache-2.0
//
// A line that stands at the end of a terminal and is redrawn in place, and what else is written
// there: that begins on a line of its own.
// Thread-safe.

#pragma once

#include <mutex>
#include <ostream>
#include <string_view>

namespace trainer {

class RedrawnLine {
 public:
  // `out` must stay alive.
  explicit RedrawnLine(std::ostream& out) : out_(out) {}

  // Shows `text`, without a line end, in the place of what was drawn before.
  void Draw(std::string_view text);
  // Whole lines, behind what was drawn.  Flushed.
  void Write(std::string_view lines);
  // What was drawn stays: whatever comes next, also from elsewhere, is on a line of its own.
  void End();

 private:
  void EndLocked();
  void Put(std::string_view text);

  std::mutex mutex_;
  std::ostream& out_;
  bool is_open_ = false;
};

}  // namespace trainer
