// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/run.h"

#include <cmath>

namespace bench {

std::string SettingOf(const Settings& settings, const std::string& name) {
  for (const auto& [known, value] : settings) {
    if (known == name) return value;
  }
  return "";
}

bool IsSpeed(double images_per_second) {
  constexpr double kSlowest = 1e-9;
  return std::isfinite(images_per_second) && images_per_second >= kSlowest;
}

void AddStep(RunMeasures& measures, std::int64_t step, double images_per_second) {
  const double seconds = 1 / images_per_second;
  measures.seconds_per_image.Add(static_cast<double>(step), seconds);
  measures.seconds_per_image_statistics.Add(seconds);
  measures.seconds_per_image_sample.Add(seconds);
  measures.last_step = step;
}

void AddLoss(RunMeasures& measures, double cross_entropy) {
  if (!std::isfinite(cross_entropy)) {
    ++measures.strange_losses;
    return;
  }
  measures.cross_entropy.Add(static_cast<double>(measures.last_step), cross_entropy);
  measures.last_cross_entropy = cross_entropy;
}

}  // namespace bench
