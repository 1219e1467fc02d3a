// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/rank_loads.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace trainer {

void RankLoads::Add(std::span<const double> busy_seconds, std::span<const RankMetrics> said) {
  ranks_.resize(busy_seconds.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    if (i < said.size() && said[i].is_known) rank.said = said[i];
    if (!std::isfinite(busy_seconds[i]) || busy_seconds[i] <= 0) continue;
    rank.steps = std::min(rank.steps + 1, kSteps);
    rank.seconds += (busy_seconds[i] - rank.seconds) / rank.steps;
  }
}

std::vector<RankLoad> RankLoads::Slowest() const {
  std::vector<RankLoad> loads;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& rank = ranks_[i];
    if (rank.steps == 0) continue;
    RankLoad load = {.rank = static_cast<int>(i), .busy_seconds = rank.seconds};
    if (i < hosts_.size()) load.host = hosts_[i].substr(0, kLetters);
    if (rank.said.is_known) {
      load.input_wait_seconds = rank.said.input_wait_seconds;
      load.gpu_percent = rank.said.device.busy_percent;
      load.compute_mhz = rank.said.device.compute_mhz;
      load.celsius = rank.said.device.celsius;
    }
    loads.push_back(std::move(load));
  }
  if (loads.size() > kMax) {
    std::ranges::stable_sort(loads, std::greater(), &RankLoad::busy_seconds);
    loads.resize(kMax);
    std::ranges::sort(loads, {}, &RankLoad::rank);
  }
  return loads;
}

double RankLoads::Median() const {
  std::vector<double> seconds;
  for (const Rank& rank : ranks_) {
    if (rank.steps > 0) seconds.push_back(rank.seconds);
  }
  if (seconds.empty()) return RankLoad::kUnknown;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>((seconds.size() - 1) / 2);
  std::ranges::nth_element(seconds, middle);
  return *middle;
}

}  // namespace trainer
