// SPDX-License-Identifier: Apache-2.0
//
// Where the time of training steps goes.  Definitions (doc/reference/metrics.md quotes them), on
// one rank, in seconds of wall clock as the training loop sees it:
//   input wait          how long the device had nothing to do because the batch was not in its
//                       memory: from the end of the step before (in the first step, and on a CPU,
//                       from asking for the batch) until it was
//   forward             from the batch being there until the loss is computed
//   backward            from there until the last gradient is computed; all-reduces run beside it
//   exposed all-reduce  from there until the last all-reduce is done: what backward did not hide
//   update              from there until the weights are updated
//   step                from the loop's turning to the step, or, where it was queued behind the one
//                       before, from the end of that, until its weights are updated and, where
//                       that is done ahead, the next batch is taken from its source
// Not thread-safe.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace trainer {

enum class StepPhase : std::uint8_t { kInputWait, kForward, kBackward, kExposedAllReduce, kUpdate };
inline constexpr std::size_t kStepPhases = 5;

// "input wait", "forward", ...
std::string_view NameOf(StepPhase phase);

struct StepTimes {
  std::array<double, kStepPhases> phases{};  // in seconds, by StepPhase
  double step = 0;                           // the whole step, in seconds

  double& operator[](StepPhase phase) { return phases[static_cast<std::size_t>(phase)]; }
  double operator[](StepPhase phase) const { return phases[static_cast<std::size_t>(phase)]; }
};

// In which a rank is at work of its own, or waits for its own input, and not for the other ranks.
inline constexpr std::array kOwnPhases = {StepPhase::kInputWait, StepPhase::kForward,
                                          StepPhase::kBackward, StepPhase::kUpdate};
// How long a rank was busy itself in a step: the sum of these.
double BusySeconds(const StepTimes& times);

class StepTimer {
 public:
  // Steps that means and medians are taken over, the last ones: by itself all of any benchmark.
  // Memory grows up to so many of them, 56 bytes each.
  explicit StepTimer(std::size_t window = std::size_t{1} << 20);

  void Add(const StepTimes& times);
  // Forgets everything: after warm-up, or for the next interval.
  void Reset();

  std::size_t count() const { return ring_.size(); }  // at most the window
  // Over the steps in the window; all zero when there are none.  The median of an even number is
  // the mean of the middle two.
  StepTimes Mean() const;
  StepTimes Median() const;

 private:
  const std::size_t window_;
  std::vector<StepTimes> ring_;
  std::size_t next_ = 0;  // the oldest, once the window is full
};

}  // namespace trainer
