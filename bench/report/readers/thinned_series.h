// SPDX-License-Identifier: Apache-2.0
//
// A curve of any length in the memory of a short one: observations are averaged over stretches of
// 1, 2, 4, ... of them, as many as it takes.  And quantiles of such a row, of every 1st, 2nd, 4th,
// ... observation.  Pure.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

// One stretch.
struct SeriesPoint {
  double x = 0;     // mean
  double mean = 0;  // of y
  double min = 0;
  double max = 0;
  std::int64_t count = 0;
  bool operator==(const SeriesPoint&) const = default;
};

class ThinnedSeries {
 public:
  ThinnedSeries() : ThinnedSeries(2048) {}
  // `capacity` stretches at most, an even number.
  explicit ThinnedSeries(std::size_t capacity);

  void Add(double x, double y);

  std::int64_t count() const { return count_; }  // of observations
  std::int64_t stretch() const { return stretch_; }
  // In the order in which they came.  The last one may be shorter than stretch().
  const std::vector<SeriesPoint>& points() const { return points_; }

 private:
  std::size_t capacity_;
  std::int64_t count_ = 0;
  std::int64_t stretch_ = 1;
  std::vector<SeriesPoint> points_;
};

// At most `most` points, each the mean of equally many of `points`; the last may be of fewer.
// REQUIRES: most > 0.
std::vector<SeriesPoint> Thinned(const std::vector<SeriesPoint>& points, std::size_t max);

// Means over kBatches equal stretches of the row, one after the other, for what is known of the
// mean of observations that depend on those before them: with 2 * kBatches observations or more,
// each batch is as many whole stretches as fit kBatches times, and what is left over at the end is
// left out; with fewer, each observation is a batch.
inline constexpr std::size_t kBatches = 20;
std::vector<double> BatchMeans(const ThinnedSeries& series);

// Every 1st, 2nd, 4th, ... observation, so that no more than `capacity` are kept.
class QuantileSample {
 public:
  QuantileSample() : QuantileSample(std::size_t{1} << 20) {}
  explicit QuantileSample(std::size_t capacity);

  void Add(double value);

  std::int64_t stride() const { return stride_; }
  // For each probability the value below which this share of the observations kept lies, between
  // two of them in proportion, as NumPy does.  REQUIRES: there is one; 0 <= probability <= 1.
  std::vector<double> Quantiles(const std::vector<double>& probabilities) const;

 private:
  std::size_t capacity_;
  std::int64_t stride_ = 1;
  std::int64_t skipped_ = 0;  // since the last one kept
  std::vector<double> kept_;
};

}  // namespace bench
