// SPDX-License-Identifier: Apache-2.0
//
// Mean, spread and extremes of observations.  Pure.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace bench {

struct Statistics {
  double mean = 0;
  double sd = 0;  // which one: see the function
  double min = 0;
  double max = 0;
  std::size_t count = 0;
};

// The sd of these observations themselves: divided by their number, as Mila's timers do.
// REQUIRES: there is one.
Statistics StatisticsOf(std::span<const double> observations);

// The sd of what they are a sample of: divided by their number less one, as pandas does; 0 where
// there is one alone.  REQUIRES: there is one.
Statistics SampleStatisticsOf(std::span<const double> observations);

// At probability * (number - 1) among them, between two neighbours in proportion, as NumPy does.
// REQUIRES: they are sorted, and there is one; 0 <= probability <= 1.
double QuantileOf(std::span<const double> sorted, double probability);

// Of an even number it is the mean of the middle two.  REQUIRES: there is one.
double MedianOf(std::vector<double> observations);

// The same as SampleStatisticsOf, of observations that come one by one and are not kept.
class RunningStatistics {
 public:
  void Add(double value);

  // Without an observation all are 0.
  Statistics Sample() const;

 private:
  Statistics all_;      // but for sd
  double squares_ = 0;  // of the differences from the mean
};

}  // namespace bench
