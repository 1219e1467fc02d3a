// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/metrics.h"

#include <algorithm>
#include <new>
#include <optional>
#include <string>

#include "trainer/core/error.h"

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
  constexpr std::size_t kNumbers = 11;
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
      own.requested.evaluate ? 1.0 : 0.0,
      static_cast<double>(own.bad_inputs)};
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
          static_cast<int>(values[10]),
          own.rank_seconds,
          own.rank_metrics_exchange};
}

void ThrowInputFault(const std::exception_ptr& own, Communicator& communicator) {
  int exit_code = EX_OSERR;
  std::string message;
  if (own) {
    try {
      std::rethrow_exception(own);
    } catch (const Error& error) {
      exit_code = error.exit_code();
      message = error.what();
    } catch (const std::bad_alloc&) {
      message = "out of memory for a batch of images";
    } catch (const std::exception& error) {
      exit_code = EX_SOFTWARE;
      message = error.what();
    }
  }
  // Of the ranks that have met something the last one says what all leave with.
  const int rank = communicator.rank();
  std::array<double, 1> last = {own ? rank : -1.0};
  communicator.AllReduceMax(last);
  const int who = static_cast<int>(last[0]);
  communicator.Broadcast(&exit_code, sizeof exit_code, who);
  if (own) throw RankFault(exit_code, message, RankFault::Whose::kOwn);
  throw RankFault(exit_code, "rank " + std::to_string(who) + " has no images to compute with",
                  RankFault::Whose::kOfPeer);
}

std::span<const double> RankSeconds::Received() {
  std::ranges::copy(places(), last_.begin() + static_cast<std::ptrdiff_t>(first()));
  EndTurn();
  return last_;
}

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

std::span<double> RankMetricsExchange::Say(double input_wait_seconds, const DeviceState& device) {
  if (const std::span own = Turn(input_wait_seconds); !own.empty()) own[1] = PackState(device);
  return places();
}

std::span<const RankMetrics> RankMetricsExchange::Received() {
  const std::span said = places();
  for (std::size_t i = 0; i < speakers(); ++i) {
    last_[first() + i] = {.input_wait_seconds = said[2 * i],
                          .device = UnpackState(said[2 * i + 1]),
                          .is_known = true};
  }
  EndTurn();
  return last_;
}

}  // namespace trainer
