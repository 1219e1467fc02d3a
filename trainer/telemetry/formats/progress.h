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
#include <string>

#include "trainer/telemetry/formats/training_log.h"
#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/redrawn_line.h"

namespace trainer {

class Progress : public TrainingLog {
 public:
  // `line` must stay alive.
  Progress(const ProgressOptions& options, RedrawnLine& line, WallClock clock = SystemClock());

  // Prints when the interval is over, and always for the last step of the run.
  // eta = steps left * mean seconds per step since the first call, pauses left out.
  void Step(const StepMetrics& metrics) override;
  void Resume(double seconds) override;

 private:
  std::string Line(const StepMetrics& metrics, TimePoint now) const;

  ProgressOptions options_;
  RedrawnLine& line_;
  WallClock clock_;
  TimePoint first_time_;
  TimePoint last_print_;
  std::int64_t first_step_ = -1;
};

}  // namespace trainer
