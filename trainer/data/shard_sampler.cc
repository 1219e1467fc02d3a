// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/shard_sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "support/number.h"
#include "trainer/core/error.h"
#include "trainer/core/philox.h"

namespace trainer {

std::string DescribeSplit(const GlobalBatch& batch) {
  const std::string ranks = support::Counted(batch.world_size, "rank");
  const std::string size = std::to_string(batch.batch_size);
  if (batch.short_ranks > 0) {
    return std::to_string(batch.batches()) + " batches of " + size + " over " + ranks;
  }
  const std::string batches =
      batch.accumulate == 1 ? "" : std::to_string(batch.accumulate) + " batches x ";
  return ranks + " x " + batches + size;
}

std::optional<GlobalBatch> SplitImages(std::int64_t images, std::int64_t max, int ranks) {
  const std::int64_t mean = images / ranks;
  const std::int64_t largest = max == 0 ? mean : std::min(max, mean);
  const std::int64_t smallest = (largest + 7) / 8;
  if (largest == 0) return std::nullopt;
  if (images % ranks == 0) {
    for (std::int64_t size = largest; size >= smallest; --size) {
      if (mean % size == 0) return GlobalBatch{size, ranks, mean / size, 0, true};
    }
  }
  std::optional<GlobalBatch> best;
  for (std::int64_t size = largest; size >= smallest; --size) {
    if (images % size != 0) continue;
    const std::int64_t batches = images / size;
    const std::int64_t of_busiest = (batches + ranks - 1) / ranks;
    const auto missing = static_cast<int>(of_busiest * ranks - batches);
    const GlobalBatch split = {size, ranks, of_busiest, missing, true};
    if (4 * of_busiest * size * ranks <= 5 * images) return split;
    const bool is_better = !best || of_busiest * size < best->accumulate * best->batch_size;
    if (is_better) best = split;
  }
  return best;
}

namespace {

// Four make a good permutation of large domains (Luby and Rackoff); small ones need more.
constexpr std::uint32_t kRounds = 8;

}  // namespace

ShardSampler::ShardSampler(std::int64_t records, std::uint64_t seed, bool shuffle)
    : records_(records), seed_(seed), shuffle_(shuffle) {
  DDL_CHECK(records > 0 && records <= std::int64_t{1} << 32);
  const int bits = std::bit_width(static_cast<std::uint64_t>(records - 1));
  half_bits_ = std::max(1, (bits + 1) / 2);
}

std::int64_t ShardSampler::RecordOf(std::int64_t sample) const {
  const std::int64_t place = sample % records_;
  return shuffle_ ? Permute(sample / records_, place) : place;
}

std::int64_t ShardSampler::Permute(std::int64_t epoch, std::int64_t place) const {
  const auto index = static_cast<std::uint64_t>(epoch);
  const std::uint32_t mask = (1u << half_bits_) - 1;
  const auto key =
      std::array{static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)};
  auto value = static_cast<std::uint64_t>(place);
  do {
    auto left = static_cast<std::uint32_t>(value >> half_bits_);
    auto right = static_cast<std::uint32_t>(value) & mask;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      // The counter layout of class Random; half_bits_ <= 16 leaves room for the round.
      const auto block =
          Philox4x32({round << 16 | right, static_cast<std::uint32_t>(RandomPurpose::kShuffle),
                      static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32)},
                     key);
      left = std::exchange(right, left ^ (block[0] & mask));
    }
    value = static_cast<std::uint64_t>(left) << half_bits_ | right;
  } while (value >= static_cast<std::uint64_t>(records_));
  return static_cast<std::int64_t>(value);
}

// Ranks that compute fewer batches sit out the last round of a step.
std::int64_t FirstOfRound(const Position& start, std::int64_t number, const GlobalBatch& batch,
                          int rank) {
  const std::int64_t since = number - start.step;
  const std::int64_t steps = since / batch.batches_of(rank);
  const std::int64_t rounds = since % batch.batches_of(rank);
  return start.sample + steps * batch.images() + rounds * batch.world_size * batch.batch_size;
}

BatchRange TrainingRange(std::int64_t round_sample, std::int64_t batch, int rank) {
  return {round_sample + rank * batch, batch};
}

BatchRange EvaluationRange(std::int64_t step, const GlobalBatch& batch, int rank,
                           std::int64_t samples) {
  BatchRange range = TrainingRange(step * batch.images(), batch.batch_size, rank);
  range.valid = std::clamp<std::int64_t>(samples - range.first_sample, 0, batch.batch_size);
  return range;
}

std::int64_t EvaluationSteps(const GlobalBatch& batch, std::int64_t samples) {
  return (samples + batch.images() - 1) / batch.images();
}

}  // namespace trainer
