// SPDX-License-Identifier: Apache-2.0
//
// How people are shown how far a long work is: by a line now and then in a file, by one that is
// redrawn on a terminal.

#pragma once

#include <functional>

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

}  // namespace trainer
