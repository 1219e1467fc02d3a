// SPDX-License-Identifier: Apache-2.0
//
// What is counted during steps, over all ranks.  doc/reference/metrics.md defines what is printed
// of it.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/backend/ops.h"
#include "trainer/comm/communicator.h"
#include "trainer/control/rank_loads.h"
#include "trainer/control/run_control.h"
#include "trainer/telemetry/meters/device_state.h"

namespace trainer {

// Sums over samples, in double so that a whole evaluation adds up.
struct LossTotals {
  double loss = 0;
  double top1 = 0;
  double top5 = 0;
  double samples = 0;

  void Add(const LossSums& sums);
  void Add(const LossTotals& other);
  // Means; not a number when there are no samples.
  double mean_loss() const { return loss / samples; }
  double top1_fraction() const { return top1 / samples; }
  double top5_fraction() const { return top5 / samples; }
};

// What the ranks tell each other at the end of each step.
struct StepExchange {
  LossTotals totals;   // in: of this rank; out: of all
  Requests requested;  // in: of this rank; out: of any
  // In: 1 if a summed gradient was NaN here; out: ranks that found one.
  int bad_gradients = 0;
  // The same of the weights before the update.
  int bad_weights = 0;
  // In: of this rank in its place, 0 in the others; out: of all.  At
  // most RankSeconds::kPlaces, equally many on each rank.
  std::span<double> rank_seconds = {};
  // The same of what ranks say in turn; at most
  // RankMetricsExchange::kPlaces.
  std::span<double> rank_metrics_exchange = {};
};

// One all-reduce.  Collective; every rank gets the same result, so all stop after the same step.
StepExchange Exchange(const StepExchange& own, Communicator& communicator);

// How long each rank is busy in a step, known to all of them, by way of the sum that ends each step
// anyway.  Of more than kPlaces ranks so many take turns, one group in each
// step, so that the sum stays short.
//
// Used from the thread of the loop; after the constructor nothing is allocated.
class RankSeconds {
 public:
  static constexpr int kPlaces = 64;

  RankSeconds(int rank, int ranks);

  // The step took this rank so long.  What it has to say in the sum, the own mean since its last
  // turn in its place and 0 in those of the others; the sum is to be written there.  Equally many
  // on each rank.
  std::span<double> Say(double busy_seconds);
  // The sum is there: what each rank has said last, by rank; 0: nothing yet.
  std::span<const double> Received();

 private:
  int first() const { return static_cast<int>(turn_) * kPlaces; }

  const int rank_;
  std::vector<double> last_;  // by rank
  std::array<double, kPlaces> places_{};
  std::int64_t turn_ = 0;  // the group of ranks that speaks
  double sum_ = 0;         // of this rank, since its last turn
  std::int64_t steps_ = 0;
};

// What each rank says of its input wait and its device, known to all by way of the sum that ends
// each step: kSpeakers ranks in each step, one group after the other, so
// that the sum stays short.
//
// Used from the thread of the loop; after the constructor nothing is allocated.
class RankMetricsExchange {
 public:
  static constexpr std::size_t kSpeakers = 8;
  static constexpr std::size_t kNumbers = 2;  // of each
  static constexpr std::size_t kPlaces = kSpeakers * kNumbers;

  RankMetricsExchange(int rank, int ranks);

  // The step is over, of which this rank has waited so long for its data.  What it has to say in
  // the sum: its own where it is its turn, and 0 in the places of the others; the sum is to be
  // written there.  Equally many on each rank.
  std::span<double> Say(double input_wait_seconds, const DeviceState& device);
  // The sum is there: what each rank has said last, by rank.
  std::span<const RankMetrics> Received();

 private:
  std::size_t first() const { return turn_ * kSpeakers; }
  std::size_t speakers() const;

  const std::size_t rank_;
  std::vector<RankMetrics> last_;  // by rank
  std::array<double, kPlaces> places_{};
  std::size_t turn_ = 0;  // the group of ranks that speaks
  double sum_ = 0;        // of this rank, since its last turn
  std::int64_t steps_ = 0;
};

// Utilisation, clock and temperature as one whole number that a double holds; what does not fit is
// left out.  Above 0.
double PackState(const DeviceState& state);
DeviceState UnpackState(double number);

}  // namespace trainer
