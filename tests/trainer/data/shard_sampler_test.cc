// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/shard_sampler.h"

#include "tests/support/test.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

std::vector<std::int64_t> Epoch(const ShardSampler& sampler, std::int64_t records,
                                std::int64_t epoch) {
  std::vector<std::int64_t> order;
  for (std::int64_t place = 0; place < records; ++place) {
    order.push_back(sampler.RecordOf(epoch * records + place));
  }
  return order;
}

TEST(ShardSampler, EveryEpochHasEveryRecordOnce) {
  for (const std::int64_t records : {1, 2, 3, 4, 5, 16, 17, 100, 1000, 65537}) {
    const ShardSampler sampler(records, 42, true);
    for (const std::int64_t epoch : {0, 1, 7}) {
      std::vector<std::int64_t> order = Epoch(sampler, records, epoch);
      std::sort(order.begin(), order.end());
      for (std::int64_t i = 0; i < records; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
    }
  }
}

TEST(ShardSampler, EpochsAndSeedsDiffer) {
  const ShardSampler sampler(100, 42, true);
  EXPECT_NE(Epoch(sampler, 100, 0), Epoch(sampler, 100, 1));
  EXPECT_NE(Epoch(sampler, 100, 0), Epoch(ShardSampler(100, 43, true), 100, 0));
  EXPECT_EQ(Epoch(sampler, 100, 3), Epoch(ShardSampler(100, 42, true), 100, 3));
}

TEST(ShardSampler, PlacesAreUniform) {
  // Where record 0 of 8 comes in 8000 epochs.
  const ShardSampler sampler(8, 1, true);
  std::vector<int> count(8);
  for (std::int64_t epoch = 0; epoch < 8000; ++epoch) {
    const auto order = Epoch(sampler, 8, epoch);
    ++count[static_cast<std::size_t>(std::find(order.begin(), order.end(), 0) - order.begin())];
  }
  for (const int n : count) EXPECT_NEAR(n, 1000, 120);  // four standard deviations
}

// Resumed runs depend on these numbers: they must never change.
TEST(ShardSampler, OrderIsTheSameForEver) {
  EXPECT_THAT(Epoch(ShardSampler(10, 1, true), 10, 0), ElementsAre(9, 8, 0, 3, 4, 1, 2, 6, 5, 7));
  EXPECT_THAT(Epoch(ShardSampler(16, 1, true), 16, 0),
              ElementsAre(13, 8, 0, 3, 4, 1, 2, 10, 5, 14, 15, 6, 7, 9, 12, 11));
  EXPECT_THAT(Epoch(ShardSampler(2, 1, true), 12, 0),
              ElementsAre(0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0));
  // Seeds and epochs count with all their bits.
  constexpr std::uint64_t kSeed = 0xFEDCBA9876543210;
  constexpr std::int64_t kEpoch = 0x123456789;
  EXPECT_THAT(Epoch(ShardSampler(6, kSeed, true), 6, 0), ElementsAre(5, 2, 4, 1, 0, 3));
  EXPECT_THAT(Epoch(ShardSampler(6, 1, true), 6, kEpoch), ElementsAre(5, 2, 0, 1, 4, 3));
  EXPECT_EQ(ShardSampler(std::int64_t{1} << 32, 1, true).RecordOf(7), 765344672);
}

TEST(ShardSampler, HasBetween1And2To32Records) {
  EXPECT_THROW(ShardSampler(0, 1, true), Error);
  EXPECT_THROW(ShardSampler((std::int64_t{1} << 32) + 1, 1, true), Error);
}

TEST(ShardSampler, WithoutShufflingItIsFileOrder) {
  const ShardSampler sampler(3, 42, false);
  EXPECT_THAT(Epoch(sampler, 3, 1), ElementsAre(0, 1, 2));
}

TEST(ShardSampler, RanksShareTheStepWhateverTheirNumber) {
  // Samples of step 5 with a global batch of 8.
  for (const int world_size : {1, 2, 4}) {
    const std::int64_t batch = 8 / world_size;
    for (int rank = 0; rank < world_size; ++rank) {
      const BatchRange range = TrainingRange(40, batch, rank);
      EXPECT_EQ(range.first_sample, 40 + rank * batch);
      EXPECT_EQ(range.valid, batch);
    }
  }
}

TEST(ShardSampler, StepsOfAnyBatchesTakeTheImagesThatFollow) {
  const Position start = {.step = 0, .sample = 40};
  for (const GlobalBatch& batch : {GlobalBatch{2, 4, 1}, GlobalBatch{2, 2, 2},
                                   GlobalBatch{2, 3, 2, 2}, GlobalBatch{1, 3, 3, 1}}) {
    std::vector<int> taken(40 + 24);
    for (int rank = 0; rank < batch.world_size; ++rank) {
      const std::int64_t own = batch.batches_of(rank);
      // As if steps 0 to 9 were over: batches are numbered through the run.
      const Position first = {.step = 10 * own, .sample = start.sample};
      for (std::int64_t number = 10 * own; number < 13 * own; ++number) {
        const std::int64_t round = FirstOfRound(first, number, batch, rank);
        const BatchRange range = TrainingRange(round, batch.batch_size, rank);
        EXPECT_EQ((range.first_sample - 40) / 8, number / own - 10) << "the step of the image";
        for (std::int64_t i = 0; i < range.valid; ++i) {
          ++taken.at(static_cast<std::size_t>(range.first_sample + i));
        }
      }
    }
    EXPECT_EQ(std::count(taken.begin(), taken.begin() + 40, 0), 40);
    EXPECT_EQ(std::count(taken.begin() + 40, taken.end(), 1), 24) << DescribeSplit(batch);
  }
}

// Takes `steps` steps from `position` on, as all ranks together, and counts each record in its
// epoch.  Returns where they end.
Position TakeSteps(const ShardSampler& sampler, Position position, std::int64_t steps,
                   std::int64_t batch, int world_size, std::vector<std::vector<int>>& epochs) {
  const std::int64_t end = position.step + steps;
  while (position.step < end) {
    for (int rank = 0; rank < world_size; ++rank) {
      const BatchRange range = TrainingRange(position.sample, batch, rank);
      for (std::int64_t sample = range.first_sample; sample < range.first_sample + range.valid;
           ++sample) {
        const auto records = static_cast<std::int64_t>(epochs.front().size());
        const auto epoch = static_cast<std::size_t>(sample / records);
        while (epochs.size() <= epoch) epochs.emplace_back(epochs.front().size());
        ++epochs[epoch][static_cast<std::size_t>(sampler.RecordOf(sample))];
      }
    }
    position = position.At(position.step + 1, batch * world_size);
  }
  return position;
}

// All epochs but the last were trained to their end; the last has no image twice.
void ExpectEachOnce(const std::vector<std::vector<int>>& epochs) {
  for (std::size_t epoch = 0; epoch + 1 < epochs.size(); ++epoch) {
    ASSERT_THAT(epochs[epoch], Each(1)) << "epoch " << epoch;
  }
  ASSERT_THAT(epochs.back(), Each(::testing::Le(1)));
}

TEST(ShardSampler, EachEpochHasEachRecordOnceForAnyNumberOfRanks) {
  constexpr std::int64_t kRecords = 101;  // of no number of ranks a multiple
  const ShardSampler sampler(kRecords, 42, true);
  for (int world_size = 1; world_size <= 33; ++world_size) {
    SCOPED_TRACE(world_size);
    std::vector<std::vector<int>> epochs(1, std::vector<int>(kRecords));
    TakeSteps(sampler, {}, 3 * kRecords / world_size + 1, 1, world_size, epochs);
    EXPECT_EQ(epochs.size(), 4U);
    ExpectEachOnce(epochs);
  }
}

// Stopped after each number of steps in turn, to go on with other ranks and another batch.
TEST(ShardSampler, EachEpochHasEachRecordOnceWhereverARunGoesOnWithOtherRanks) {
  constexpr std::int64_t kRecords = 101;
  const ShardSampler sampler(kRecords, 42, true);
  for (int world_size = 1; world_size <= 33; ++world_size) {
    for (std::int64_t stop = 0; stop * world_size <= 2 * kRecords; ++stop) {
      SCOPED_TRACE(::testing::Message() << world_size << " ranks, stopped after " << stop);
      const int next_world_size = static_cast<int>((world_size * 7 + stop) % 33 + 1);
      const std::int64_t next_batch = stop % 3 + 1;
      std::vector<std::vector<int>> epochs(1, std::vector<int>(kRecords));
      Position position = TakeSteps(sampler, {}, stop, 1, world_size, epochs);
      EXPECT_EQ(position, (Position{stop, stop * world_size}));
      position = TakeSteps(sampler, position, 2, next_batch, next_world_size, epochs);
      position = TakeSteps(sampler, position, kRecords, 1, 1, epochs);
      EXPECT_EQ(position.step, stop + 2 + kRecords);
      EXPECT_EQ(position.sample, stop * world_size + 2 * next_batch * next_world_size + kRecords);
      ExpectEachOnce(epochs);
    }
  }
}

TEST(ShardSampler, EvaluationCountsEachImageOnceInEqualSteps) {
  for (const std::int64_t samples : {1, 7, 8, 9, 50}) {
    std::vector<int> seen(static_cast<std::size_t>(samples));
    const std::int64_t steps = EvaluationSteps({4, 2}, samples);
    EXPECT_EQ(steps, (samples + 7) / 8);
    for (std::int64_t step = 0; step < steps; ++step) {
      for (int rank = 0; rank < 2; ++rank) {
        const BatchRange range = EvaluationRange(step, {4, 2}, rank, samples);
        for (std::int64_t i = 0; i < range.valid; ++i) {
          ++seen.at(static_cast<std::size_t>(range.first_sample + i));
        }
      }
    }
    EXPECT_THAT(seen, Each(1));
  }
}

}  // namespace
}  // namespace trainer
