// SPDX-License-Identifier: Apache-2.0
//
// What the files of one run say, as it was read; nothing is worked out here.  Values.  What a run
// did not record is empty.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/base/statistics.h"

namespace bench {

// A curve of any length in the memory of a short one: observations are averaged over stretches of
// 1, 2, 4, ... of them, as many as it takes.  And quantiles of such a row, of every 1st, 2nd, 4th,
// ... observation.  Pure.

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

using Settings = std::vector<std::pair<std::string, std::string>>;

// The value of `name`; "" when there is none.
std::string SettingOf(const Settings& settings, const std::string& name);

// Of every step that the log has.
struct RunMeasures {
  // Seconds that an image takes all ranks together, 1 / imgs_per_sec.  In steps of equally many
  // images their mean is time over images.
  ThinnedSeries seconds_per_image;  // by step
  RunningStatistics seconds_per_image_statistics;
  QuantileSample seconds_per_image_sample;
  ThinnedSeries cross_entropy;  // by step
  std::optional<double> last_cross_entropy;
  std::int64_t strange_losses = 0;  // NaN or infinite
  std::int64_t last_step = -1;
};

// Whether a step can have had so many images/s.
bool IsSpeed(double images_per_second);
// A step and its images/s.  REQUIRES: IsSpeed(images_per_second).
void AddStep(RunMeasures& measures, std::int64_t step, double images_per_second);
// Of that step: its cross-entropy, NaN where it is no finite number.
void AddLoss(RunMeasures& measures, double cross_entropy);

// Of an evaluation; the last one of a log counts.
struct Evaluation {
  std::optional<double> top1;  // fraction of 1
  std::optional<double> top5;
  std::optional<double> loss;
  std::optional<double> images_per_second;
};

// The phases of a step, as the trainer names them (trainer/telemetry/meters/step_timer.h).
inline constexpr std::array<const char*, 5> kPhaseNames = {"input wait", "forward", "backward",
                                                           "exposed all-reduce", "update"};

// Means over some steps of one rank, in seconds.
struct RankTimes {
  std::string host;
  std::array<double, kPhaseNames.size()> phases{};
  double step = 0;
  std::int64_t steps = 0;  // 0: not said
};

// What was sampled of one GPU; x is in seconds from the start of its file.
struct GpuSamples {
  std::string name;
  ThinnedSeries sm_clock;      // MHz
  ThinnedSeries memory_clock;  // MHz
  ThinnedSeries power;         // W
  ThinnedSeries temperature;   // degrees Celsius
  double energy = 0;           // J: power over time, the line between two samples
  double power_seconds = 0;    // between the first sample of power and the last
};

struct RunRecord {
  std::string path;      // as it was named or found
  std::string log;       // path of its log; "" for none
  Settings settings;     // options of its last launch
  Settings environment;  // what the program said of its last launch: version, command, ranks, ...
  int launches = 0;
  std::int64_t ranks = 0;  // 0: not said
  std::string began;       // "2026-11-23 10:00:00" of the first line, by the clock of its machine
  double seconds = 0;      // from the first line to the last
  RunMeasures measures;
  std::optional<double> train_throughput;  // images/s, as the program said
  Evaluation evaluation;
  std::string times_from;          // the file that `times` are of: trace.json, ...
  std::map<int, RankTimes> times;  // by rank
  std::vector<GpuSamples> gpus;
  bool is_torn = false;  // the log ends within a line
};

}  // namespace bench
