// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/monitor/spike_detector.h"

#include <cmath>

namespace trainer {

std::optional<Outlier> SpikeDetector::Add(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  std::optional<Outlier> outlier;
  if (added_ >= kWindow) {
    constexpr auto kCount = static_cast<double>(kWindow);
    double sum = 0;
    for (const double other : window_) sum += other;
    const double mean = sum / kCount;
    double squares = 0;
    for (const double other : window_) squares += (other - mean) * (other - mean);
    const double deviation = std::sqrt(squares / kCount);
    const double above = value - mean;
    if (above > kDeviations * deviation && above > share_ * std::abs(mean)) {
      outlier = {mean, deviation};
    }
  }
  window_[added_++ % kWindow] = value;
  return outlier;
}

}  // namespace trainer
