// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/statistics.h"

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

}  // namespace bench
