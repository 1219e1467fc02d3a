// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/loss_scale.h"

#include <algorithm>

namespace trainer {

bool LossScale::Update(bool overflow) {
  if (!dynamic_) return !overflow;
  if (overflow) {
    if (scale_ <= 1) return false;
    scale_ = std::max(scale_ / 2, 1.0);
    good_steps_ = 0;
  } else if (++good_steps_ == kGrowthSteps) {
    scale_ = std::min(scale_ * 2, kLargest);
    good_steps_ = 0;
  }
  return true;
}

void LossScale::Restore(double scale, std::int64_t good_steps) {
  if (!dynamic_) return;
  scale_ = scale;
  good_steps_ = good_steps;
}

}  // namespace trainer
