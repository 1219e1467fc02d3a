// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/meters/step_timer.h"

#include <algorithm>
#include <functional>

#include "trainer/core/error.h"

namespace trainer {
namespace {

double MedianOf(std::vector<double>& values) {
  if (values.empty()) return 0;
  const std::size_t half = values.size() / 2;
  std::ranges::sort(values);
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

std::string_view NameOf(StepPhase phase) {
  static constexpr std::string_view kNames[kStepPhases] = {"input wait", "forward", "backward",
                                                           "exposed all-reduce", "update"};
  return kNames[static_cast<std::size_t>(phase)];
}

double BusySeconds(const StepTimes& times) {
  double seconds = 0;
  for (const StepPhase phase : kOwnPhases) seconds += times[phase];
  return seconds;
}

StepTimer::StepTimer(std::size_t window) : window_(window) { DDL_CHECK(window > 0); }

void StepTimer::Add(const StepTimes& times) {
  if (ring_.size() < window_) {
    ring_.push_back(times);
    return;
  }
  ring_[next_] = times;
  next_ = (next_ + 1) % window_;
}

void StepTimer::Reset() {
  ring_.clear();
  next_ = 0;
}

StepTimes StepTimer::Mean() const {
  StepTimes mean;
  const auto count = static_cast<double>(ring_.size());
  for (const StepTimes& times : ring_) {
    for (std::size_t phase = 0; phase < kStepPhases; ++phase) {
      mean.phases[phase] += times.phases[phase] / count;
    }
    mean.step += times.step / count;
  }
  return mean;
}

StepTimes StepTimer::Median() const {
  StepTimes median;
  std::vector<double> values(ring_.size());
  const auto median_of = [&](const std::function<double(const StepTimes&)>& pick) {
    std::transform(ring_.begin(), ring_.end(), values.begin(), pick);
    return MedianOf(values);
  };
  for (std::size_t phase = 0; phase < kStepPhases; ++phase) {
    median.phases[phase] = median_of([&](const StepTimes& times) { return times.phases[phase]; });
  }
  median.step = median_of([](const StepTimes& times) { return times.step; });
  return median;
}

}  // namespace trainer
