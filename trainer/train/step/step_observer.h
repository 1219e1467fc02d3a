// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdint>

#include "trainer/train/step/step_result.h"

namespace trainer {

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
