// SPDX-License-Identifier: Apache-2.0
//
// What is known of a training step once it is over; all logs are written from it.

#pragma once

#include <cstdint>
#include <span>

#include "trainer/control/rank_loads.h"
#include "trainer/telemetry/meters/step_timer.h"

namespace trainer {

// One step, as all ranks agree on it.
struct StepResult {
  std::int64_t step = 0;         // from 0
  std::int64_t launch_step = 0;  // from 0 at the start of this process
  double cross_entropy = 0;      // mean over the global batch, label smoothing included
  double l2_loss = 0;            // weight_decay * sum of squares / 2, of the weights before it
  double top1 = 0;               // fraction of the global batch
  double gradient_norm = 0;      // of the mean over the global batch, L2 loss not included
  double learning_rate = 0;
  double loss_scale = 1;
  bool skipped = false;   // a gradient overflowed: nothing was updated
  bool left_out = false;  // loss or gradient was NaN: nothing was updated (non_finite_guard.h)
  StepTimes times;        // of this rank
  // How long each rank was busy itself, by rank, as it has said last; 0: not known.  Until the next
  // step.
  std::span<const double> rank_seconds;
  std::span<const RankMetrics> rank_metrics_exchange;  // the same of what each has said of itself

  double total_loss() const { return cross_entropy + l2_loss; }
};

// Looks at the steps of a launch and changes nothing of them.  The loop calls all of its watchers
// on every rank at the same steps, so a call may be collective.  Steps count from 0.
class StepObserver {
 public:
  virtual ~StepObserver() = default;

  // This launch makes the steps from `first` up to, but not, `end`.
  virtual void Start(std::int64_t /*first*/, std::int64_t /*end*/) {}
  virtual void Before(std::int64_t /*step*/) {}
  virtual void After(const StepResult& /*record*/) {}
  // What was computed since the last step is of none.
  virtual void LeaveOut() {}
  // The step that has begun does not count: training was rolled back to a checkpoint, and its
  // next step may be any.
  virtual void RolledBack() {}
  // No step follows in this launch.
  virtual void End() {}
};

}  // namespace trainer
