// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/run.h"

#include <algorithm>
#include <cmath>

#include "bench/base/statistics.h"
#include "trainer/core/error.h"

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

namespace {

void Join(SeriesPoint& point, const SeriesPoint& next) {
  const double share =
      static_cast<double>(next.count) / static_cast<double>(point.count + next.count);
  point.x += (next.x - point.x) * share;
  point.mean += (next.mean - point.mean) * share;
  point.min = std::min(point.min, next.min);
  point.max = std::max(point.max, next.max);
  point.count += next.count;
}

}  // namespace

ThinnedSeries::ThinnedSeries(std::size_t capacity) : capacity_(capacity) {
  DDL_CHECK(capacity >= 2 && capacity % 2 == 0);
}

void ThinnedSeries::Add(double x, double y) {
  ++count_;
  const SeriesPoint point = {x, y, y, y, 1};
  if (!points_.empty() && points_.back().count < stretch_) {
    Join(points_.back(), point);
    return;
  }
  if (points_.size() == capacity_) {
    points_ = Thinned(points_, capacity_ / 2);
    stretch_ *= 2;
  }
  points_.push_back(point);
}

std::vector<SeriesPoint> Thinned(const std::vector<SeriesPoint>& points, std::size_t max) {
  DDL_CHECK(max > 0);
  const std::size_t together = (points.size() + max - 1) / max;
  std::vector<SeriesPoint> thinned;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i % together == 0) {
      thinned.push_back(points[i]);
    } else {
      Join(thinned.back(), points[i]);
    }
  }
  return thinned;
}

std::vector<double> BatchMeans(const ThinnedSeries& series) {
  const std::vector<SeriesPoint>& points = series.points();
  std::size_t whole = points.size();
  if (whole > 0 && points.back().count < series.stretch()) --whole;
  const std::size_t together = whole < 2 * kBatches ? 1 : whole / kBatches;
  const std::size_t batches = whole < 2 * kBatches ? whole : kBatches;
  std::vector<double> means;
  for (std::size_t batch = 0; batch < batches; ++batch) {
    double sum = 0;
    for (std::size_t i = 0; i < together; ++i) sum += points[batch * together + i].mean;
    means.push_back(sum / static_cast<double>(together));
  }
  return means;
}

QuantileSample::QuantileSample(std::size_t capacity) : capacity_(capacity) {
  DDL_CHECK(capacity >= 2 && capacity % 2 == 0);
}

void QuantileSample::Add(double value) {
  if (skipped_ > 0) {
    --skipped_;
    return;
  }
  if (kept_.size() == capacity_) {
    for (std::size_t i = 0; i < capacity_ / 2; ++i) kept_[i] = kept_[2 * i];
    kept_.resize(capacity_ / 2);
    stride_ *= 2;
  }
  kept_.push_back(value);
  skipped_ = stride_ - 1;
}

std::vector<double> QuantileSample::Quantiles(const std::vector<double>& probabilities) const {
  DDL_CHECK(!kept_.empty());
  std::vector<double> sorted = kept_;
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> quantiles;
  for (const double probability : probabilities) {
    quantiles.push_back(QuantileOf(sorted, probability));
  }
  return quantiles;
}

}  // namespace bench
