// SPDX-License-Identifier: Apache-2.0
//
// What each rank says of its input wait and its device, known to all by way of the sum that ends
// each step (train/step/metrics.h): kSpeakers ranks in each step, one group after the other, so
// that the sum stays short.
//
// Used from the thread of the loop; after the constructor nothing is allocated.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/control/rank_loads.h"
#include "trainer/telemetry/meters/device_state.h"

namespace trainer {

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
