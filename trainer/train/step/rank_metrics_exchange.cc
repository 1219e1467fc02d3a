// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/rank_metrics_exchange.h"

#include <algorithm>
#include <optional>

namespace trainer {
namespace {

// Of each part of a packed number; 0 is what is not known, else the value and one.
constexpr std::uint64_t kPartSize = 1 << 16;

std::uint64_t PartOf(std::optional<int> value) {
  const bool fits = value && *value >= 0 && static_cast<std::uint64_t>(*value) + 1 < kPartSize;
  return fits ? static_cast<std::uint64_t>(*value) + 1 : 0;
}

std::optional<int> TakePart(std::uint64_t& number) {
  const std::uint64_t part = number % kPartSize;
  number /= kPartSize;
  return part == 0 ? std::nullopt : std::optional(static_cast<int>(part - 1));
}

}  // namespace

double PackState(const DeviceState& state) {
  std::uint64_t number = 1;
  for (const auto& value : {state.busy_percent, state.compute_mhz, state.celsius}) {
    number = number * kPartSize + PartOf(value);
  }
  return static_cast<double>(number);
}

DeviceState UnpackState(double number) {
  auto rest = static_cast<std::uint64_t>(number);
  DeviceState state;
  state.celsius = TakePart(rest);
  state.compute_mhz = TakePart(rest);
  state.busy_percent = TakePart(rest);
  return state;
}

RankMetricsExchange::RankMetricsExchange(int rank, int ranks)
    : rank_(static_cast<std::size_t>(rank)), last_(static_cast<std::size_t>(ranks)) {}

std::size_t RankMetricsExchange::speakers() const {
  return std::min(kSpeakers, last_.size() - first());
}

std::span<double> RankMetricsExchange::Say(double input_wait_seconds, const DeviceState& device) {
  sum_ += input_wait_seconds;
  ++steps_;
  places_.fill(0);
  if (rank_ >= first() && rank_ < first() + speakers()) {
    const std::size_t place = (rank_ - first()) * kNumbers;
    places_[place] = sum_ / static_cast<double>(steps_);
    places_[place + 1] = PackState(device);
    sum_ = 0;
    steps_ = 0;
  }
  return std::span(places_).first(speakers() * kNumbers);
}

std::span<const RankMetrics> RankMetricsExchange::Received() {
  for (std::size_t i = 0; i < speakers(); ++i) {
    last_[first() + i] = {.input_wait_seconds = places_[i * kNumbers],
                          .device = UnpackState(places_[i * kNumbers + 1]),
                          .is_known = true};
  }
  if (++turn_ * kSpeakers >= last_.size()) turn_ = 0;
  return last_;
}

}  // namespace trainer
