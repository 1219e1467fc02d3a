// SPDX-License-Identifier: Apache-2.0

#include "bench/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

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

namespace {

constexpr double kUpperProbability = 0.5 + kConfidence / 2;

// The continued fraction of the incomplete beta function (NIST DLMF 8.17.22), by Lentz's method.
// It converges quickly for x < (a + 1) / (a + b + 2).
double BetaFraction(double x, double a, double b) {
  constexpr int kMaxTerms = 10'000;
  constexpr double kTiny = 1e-300;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double numerator = 1;
  double denominator = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = denominator;
  for (int i = 1; i <= kMaxTerms; ++i) {
    const double m = i;
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    denominator = 1 / away_from_zero(1 + even * denominator);
    numerator = away_from_zero(1 + even / numerator);
    fraction *= numerator * denominator;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    denominator = 1 / away_from_zero(1 + odd * denominator);
    numerator = away_from_zero(1 + odd / numerator);
    const double change = numerator * denominator;
    fraction *= change;
    if (std::abs(change - 1) < std::numeric_limits<double>::epsilon()) break;
  }
  return fraction;
}

// I_x(a, b), the regularised incomplete beta function.  `rest` is 1 - x, which may be known better.
double RegularisedBeta(double x, double rest, double a, double b) {
  if (x <= 0) return 0;
  if (rest <= 0) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log(rest));
  if (x < (a + 1) / (a + b + 2)) return front * BetaFraction(x, a, b) / a;
  return 1 - front * BetaFraction(rest, b, a) / b;
}

// sd^2 / n
double VarianceOfMean(const Statistics& all) {
  return all.sd * all.sd / static_cast<double>(all.count);
}

}  // namespace

double StudentProbability(double t, double degrees) {
  DDL_CHECK(degrees > 0 && std::isfinite(t));
  const double sum = degrees + t * t;
  const double tail = RegularisedBeta(degrees / sum, t * t / sum, degrees / 2, 0.5) / 2;
  return t < 0 ? tail : 1 - tail;
}

double StudentQuantile(double probability, double degrees) {
  DDL_CHECK(probability >= 0.5 && probability < 1 && degrees >= 1);
  double low = 0;
  double high = 1;
  while (StudentProbability(high, degrees) < probability) high *= 2;
  // To the last digit that a double has.
  constexpr int kHalvings = 100;
  for (int i = 0; i < kHalvings && low < high; ++i) {
    const double middle = (low + high) / 2;
    (StudentProbability(middle, degrees) < probability ? low : high) = middle;
  }
  return high;
}

std::optional<double> MeanMargin(std::span<const double> observations) {
  if (observations.size() < 2) return std::nullopt;
  const Statistics all = SampleStatisticsOf(observations);
  const double t = StudentQuantile(kUpperProbability, static_cast<double>(all.count - 1));
  return t * std::sqrt(VarianceOfMean(all));
}

std::optional<double> DifferenceMargin(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  const Statistics of_a = SampleStatisticsOf(a);
  const Statistics of_b = SampleStatisticsOf(b);
  const double variance_a = VarianceOfMean(of_a);
  const double variance_b = VarianceOfMean(of_b);
  const double variance = variance_a + variance_b;
  if (variance == 0) return 0;
  const double degrees = variance * variance /
                         (variance_a * variance_a / static_cast<double>(of_a.count - 1) +
                          variance_b * variance_b / static_cast<double>(of_b.count - 1));
  return StudentQuantile(kUpperProbability, std::max(1.0, degrees)) * std::sqrt(variance);
}

BoxPlot BoxOf(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return {QuantileOf(sorted, 0.25), QuantileOf(sorted, 0.5), QuantileOf(sorted, 0.75)};
}

}  // namespace bench
