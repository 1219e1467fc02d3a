// SPDX-License-Identifier: Apache-2.0

#include "bench/base/statistics.h"

#include <algorithm>
#include <cmath>

#include "trainer/core/error.h"

namespace bench {
namespace {

// The sum of squares is divided by the number of observations less `less`.
Statistics Summarise(std::span<const double> observations, std::size_t less) {
  DDL_CHECK(!observations.empty());
  Statistics all;
  all.count = observations.size();
  for (const double value : observations) all.mean += value;
  all.mean /= static_cast<double>(all.count);
  double squares = 0;
  for (const double value : observations) squares += (value - all.mean) * (value - all.mean);
  if (all.count > less) all.sd = std::sqrt(squares / static_cast<double>(all.count - less));
  const auto [min, max] = std::minmax_element(observations.begin(), observations.end());
  all.min = *min;
  all.max = *max;
  return all;
}

}  // namespace

Statistics StatisticsOf(std::span<const double> observations) { return Summarise(observations, 0); }

Statistics SampleStatisticsOf(std::span<const double> observations) {
  return Summarise(observations, 1);
}

double QuantileOf(std::span<const double> sorted, double probability) {
  DDL_CHECK(!sorted.empty() && probability >= 0 && probability <= 1);
  const double place = probability * static_cast<double>(sorted.size() - 1);
  const double below = std::floor(place);
  const auto index = static_cast<std::size_t>(below);
  const std::size_t next = std::min(index + 1, sorted.size() - 1);
  return sorted[index] + (sorted[next] - sorted[index]) * (place - below);
}

double MedianOf(std::vector<double> observations) {
  DDL_CHECK(!observations.empty());
  std::sort(observations.begin(), observations.end());
  const std::size_t half = observations.size() / 2;
  return observations.size() % 2 == 1 ? observations[half]
                                      : (observations[half] + observations[half - 1]) / 2;
}

// After Welford: the sum of squares stays exact beside a large mean.
void RunningStatistics::Add(double value) {
  if (all_.count == 0) all_.min = all_.max = value;
  ++all_.count;
  const double before = value - all_.mean;
  all_.mean += before / static_cast<double>(all_.count);
  squares_ += before * (value - all_.mean);
  all_.min = std::min(all_.min, value);
  all_.max = std::max(all_.max, value);
}

Statistics RunningStatistics::Sample() const {
  Statistics all = all_;
  if (all.count > 1) all.sd = std::sqrt(squares_ / static_cast<double>(all.count - 1));
  return all;
}

}  // namespace bench
