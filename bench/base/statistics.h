// SPDX-License-Identifier: Apache-2.0
//
// Mean, spread and extremes of observations.  Pure.

#pragma once

#include <cstddef>
#include <optional>
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

// How sure a mean and a difference of means are: intervals of Student's t at 95 %.  They hold for
// observations that are independent and nearly normal; steps that follow one another are neither,
// so means of long stretches of them are taken in their place (BatchMeans).  Pure.

// Of all such intervals this share holds the true value.
inline constexpr double kConfidence = 0.95;

// P(T <= t) for Student's t with so many degrees of freedom, which need not be a whole number.
// REQUIRES: degrees > 0; t is finite.
double StudentProbability(double t, double degrees);

// The t with P(T <= t) = probability.  REQUIRES: 0.5 <= probability < 1; degrees >= 1.
double StudentQuantile(double probability, double degrees);

// Half of the interval around the mean: t sd / sqrt(n), with n - 1 degrees of freedom.  Nothing for
// fewer than two observations.
std::optional<double> MeanMargin(std::span<const double> observations);

// Half of the interval around the difference of the two means, without taking them to scatter alike
// (Welch): t sqrt(sd_a^2/n_a + sd_b^2/n_b), with Satterthwaite's degrees of freedom.  Nothing for
// fewer than two observations on either side.
std::optional<double> DifferenceMargin(std::span<const double> a, std::span<const double> b);

// What a box plot shows of some values.  Pure.

struct BoxPlot {
  double q1 = 0;
  double median = 0;
  double q3 = 0;

  // The whiskers: values outside of them are outliers.
  double lower() const { return q1 - 1.5 * (q3 - q1); }
  double upper() const { return q3 + 1.5 * (q3 - q1); }
  // Of 1: from whisker to whisker, over the median.
  double variation() const { return (upper() - lower()) / median; }
};

// Quartiles as pandas has them: between two values in proportion.  REQUIRES: there is a value.
BoxPlot BoxOf(std::span<const double> values);

}  // namespace bench
