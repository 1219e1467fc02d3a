// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/metrics.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "trainer/core/error.h"
#include "trainer/train/step/rank_busy_times.h"
#include "trainer/train/step/rank_metrics_exchange.h"

namespace trainer {

void LossTotals::Add(const LossSums& sums) {
  loss += sums.loss;
  top1 += sums.top1;
  top5 += sums.top5;
  samples += sums.samples;
}

void LossTotals::Add(const LossTotals& other) {
  loss += other.loss;
  top1 += other.top1;
  top5 += other.top5;
  samples += other.samples;
}

StepExchange Exchange(const StepExchange& own, Communicator& communicator) {
  const LossTotals& totals = own.totals;
  constexpr std::size_t kNumbers = 10;
  std::array<double, kNumbers + RankSeconds::kPlaces + RankMetricsExchange::kPlaces> values = {
      totals.loss,
      totals.top1,
      totals.top5,
      totals.samples,
      own.requested.stop ? 1.0 : 0.0,
      own.requested.save ? 1.0 : 0.0,
      own.requested.pause ? 1.0 : 0.0,
      static_cast<double>(own.bad_gradients),
      static_cast<double>(own.bad_weights),
      own.requested.evaluate ? 1.0 : 0.0};
  DDL_CHECK(own.rank_seconds.size() <= RankSeconds::kPlaces &&
            own.rank_metrics_exchange.size() <= RankMetricsExchange::kPlaces);
  const auto places = std::span(values).subspan(kNumbers, own.rank_seconds.size());
  const auto words =
      std::span(values).subspan(kNumbers + places.size(), own.rank_metrics_exchange.size());
  std::ranges::copy(own.rank_seconds, places.begin());
  std::ranges::copy(own.rank_metrics_exchange, words.begin());
  communicator.AllReduceSum(std::span(values).first(kNumbers + places.size() + words.size()));
  std::ranges::copy(places, own.rank_seconds.begin());
  std::ranges::copy(words, own.rank_metrics_exchange.begin());
  return {{values[0], values[1], values[2], values[3]},
          {values[4] > 0, values[5] > 0, values[6] > 0, values[9] > 0},
          static_cast<int>(values[7]),
          static_cast<int>(values[8]),
          own.rank_seconds,
          own.rank_metrics_exchange};
}

}  // namespace trainer
