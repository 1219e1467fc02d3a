// SPDX-License-Identifier: Apache-2.0
//
// A line that stands at the end of a terminal and is redrawn in place, and how people are shown the
// progress of long work.

#pragma once

#include <functional>
#include <mutex>
#include <ostream>
#include <string_view>

namespace trainer {

struct ProgressOptions {
  bool terminal = false;     // main: isatty(2)
  bool color = false;        // main: terminal and NO_COLOR not set
  bool beside_text = false;  // main: terminal, and standard output is one too
  // Of the terminal, asked at each redraw: people make it narrower.
  std::function<int()> columns = [] { return 80; };
  double interval_seconds = 10;  // between lines in a file
  double redraw_seconds = 0.2;   // between redraws on a terminal
};

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
