// SPDX-License-Identifier: Apache-2.0
//
// The factor on the loss that keeps 16-bit gradients away from zero; the update divides it out
// again.  Static, or dynamic after Micikevicius et al., "Mixed precision training" (2018): it
// halves when a gradient overflows and doubles after kGrowthSteps steps without.  A run in fp32
// uses a static scale of 1.

#pragma once

#include <cstdint>

namespace trainer {

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

  // From a checkpoint.  A static scale stays as configured.
  void Restore(double scale, std::int64_t good_steps);

 private:
  LossScale(double scale, bool dynamic) : scale_(scale), dynamic_(dynamic) {}

  double scale_;
  bool dynamic_;
  std::int64_t good_steps_ = 0;
};

}  // namespace trainer
