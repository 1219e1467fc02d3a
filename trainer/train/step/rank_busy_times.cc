// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/rank_busy_times.h"

#include <algorithm>
#include <cstddef>

namespace trainer {

RankSeconds::RankSeconds(int rank, int ranks)
    : rank_(rank), last_(static_cast<std::size_t>(ranks)) {}

std::span<double> RankSeconds::Say(double busy_seconds) {
  sum_ += busy_seconds;
  ++steps_;
  const std::size_t count =
      std::min<std::size_t>(kPlaces, last_.size() - static_cast<std::size_t>(first()));
  places_.fill(0);
  if (rank_ >= first() && rank_ < first() + kPlaces) {
    places_[static_cast<std::size_t>(rank_ - first())] = sum_ / static_cast<double>(steps_);
    sum_ = 0;
    steps_ = 0;
  }
  return std::span(places_).first(count);
}

std::span<const double> RankSeconds::Received() {
  const std::size_t count =
      std::min<std::size_t>(kPlaces, last_.size() - static_cast<std::size_t>(first()));
  std::copy_n(places_.begin(), count, last_.begin() + first());
  if (++turn_ * kPlaces >= static_cast<std::int64_t>(last_.size())) turn_ = 0;
  return last_;
}

}  // namespace trainer
