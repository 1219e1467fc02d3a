// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a step whose loss, gradient or weights are infinite or NaN (--on_nan).
//
//   kStop  The run ends, before anything is saved.
//   kSkip  Training continues without the update of this step, which the optimizer has left out
//          on all ranks for its gradient.  The run ends all the same after more than kMaxInARow
//          such steps in a row, and where leaving out is no help: the weights themselves are NaN,
//          or the update was made.
//   kRollback
//          All ranks return to the newest checkpoint (train/state/snapshot.h), which heals weights
//          that are NaN, too.
//
// A gradient that has overflowed is no such thing while a dynamic loss scale can still be lowered:
// that is done, and training goes on.
//
// Every rank judges by what the exchange of the step has told all of them, so all judge alike.

#pragma once

#include <cstdint>
#include <string>

#include "trainer/train/config.h"
#include "trainer/train/step/metrics.h"

namespace trainer {

// The factor on the loss that keeps 16-bit gradients away from zero; the update divides it out
// again.  Static, or dynamic after Micikevicius et al., "Mixed precision training" (2018): it
// halves when a gradient overflows and doubles after kGrowthSteps steps without.  A run in fp32
// uses a static scale of 1.
class LossScale {
 public:
  static constexpr std::int64_t kGrowthSteps = 2000;
  static constexpr double kLargest = 16777216;  // 2^24

  static LossScale Static(double scale) { return {scale, false}; }
  static LossScale Dynamic(double first) { return {first, true}; }

  double scale() const { return scale_; }
  bool dynamic() const { return dynamic_; }
  std::int64_t good_steps() const { return good_steps_; }  // since the scale last changed

  // After each step; a static scale stays.  Returns false when the gradients have overflowed and
  // there is nothing left to lower: static, or dynamic at 1.  Then training cannot go on.
  [[nodiscard]] bool Update(bool overflow);

  // Whether it changes after the next step even if that is a good one.
  bool IsAboutToGrow() const { return dynamic_ && good_steps_ + 1 == kGrowthSteps; }

  // From a checkpoint.  A static scale stays as configured.
  void Restore(double scale, std::int64_t good_steps);

 private:
  LossScale(double scale, bool dynamic) : scale_(scale), dynamic_(dynamic) {}

  double scale_;
  bool dynamic_;
  std::int64_t good_steps_ = 0;
};

enum class Verdict : std::uint8_t {
  kUpdated,
  kOverflowed,  // nothing was updated, the loss scale is lower now
  kLeftOut,     // nothing was updated, by kSkip
  kRollback,    // what is there now is not to be used: by kRollback
};

class NonFiniteGuard {
 public:
  // More in a row are not a bad batch but a training that has diverged.
  static constexpr int kMaxInARow = 10;

  NonFiniteGuard(OnNan on_nan, int ranks) : on_nan_(on_nan), ranks_(ranks) {}

  // `record`: of a step, `all` what was exchanged at its end.  Updates `loss_scale`.
  // Throws Error, on every rank: EX_SOFTWARE where training cannot go on, saying the step, what is
  // no number, and what to try; EX_OSERR where weights or sums of gradients that should be the same
  // on all ranks are no numbers on some of them, whatever is asked for.
  Verdict Check(const StepResult& record, const StepExchange& all, LossScale& loss_scale);
  // What was found, and in which step: of the last kRollback.
  const std::string& found() const { return found_; }

 private:
  Verdict LeaveOut(const StepResult& record, const std::string& found);

  const OnNan on_nan_;
  const int ranks_;
  int in_a_row_ = 0;
  std::string found_;
};

}  // namespace trainer
