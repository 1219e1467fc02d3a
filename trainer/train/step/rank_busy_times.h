// SPDX-License-Identifier: Apache-2.0
//
// How long each rank is busy in a step, known to all of them, by way of the sum that ends each step
// anyway (train/step/metrics.h).  Of more than kPlaces ranks so many take turns, one group in each
// step, so that the sum stays short.
//
// Used from the thread of the loop; after the constructor nothing is allocated.

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace trainer {

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

}  // namespace trainer
