// SPDX-License-Identifier: Apache-2.0
//
// What a person watching a run sees.  In a file: one line per interval,
//   2026-01-02T03:04:05+01:00 epoch 3/50 step 1200/25000 365.1 images/s loss 2.4141 lr 0.1024 eta
//   0:42:07
// and never a carriage return.  On a terminal: the same with a bar, redrawn in place, so that all
// else that goes there is to know of the line (telemetry/text/redrawn_line.h).
// Not thread-safe; rank 0 alone writes it.

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/redrawn_line.h"

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

struct ProgressState {
  std::int64_t epoch = 0;   // the one under way, from 0
  std::int64_t epochs = 0;  // 0: the run is counted in steps; no epoch is shown
  std::int64_t step = 0;    // done, those before a resume included
  std::int64_t total_steps = 0;
  double images_per_second = 0;  // all ranks together
  double loss = 0;
  double learning_rate = 0;
};

class Progress {
 public:
  // `line` must stay alive.
  Progress(const ProgressOptions& options, RedrawnLine& line, WallClock clock = SystemClock());

  // Call after each step; prints when the interval is over, and always for the last step.
  // eta = steps left * mean seconds per step since the first call.
  void Update(const ProgressState& state);
  // So long nothing was done, which says nothing of how long the rest will take.
  void LeaveOut(double seconds);

 private:
  std::string Line(const ProgressState& state, TimePoint now) const;

  ProgressOptions options_;
  RedrawnLine& line_;
  WallClock clock_;
  TimePoint first_time_;
  TimePoint last_print_;
  std::int64_t first_step_ = -1;
};

// "0:42:07", "2d 03:04:05"; "?" for what is not known (negative or not finite).
std::string FormatDuration(double seconds);

}  // namespace trainer
