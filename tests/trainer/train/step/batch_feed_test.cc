// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/batch_feed.h"

#include <thread>

#include "tests/support/test.h"
#include "tests/trainer/backend/each_backend.h"
#include "tests/trainer/train/generated_data_loader.h"
#include "trainer/core/error.h"
#include "trainer/core/philox.h"

namespace trainer {
namespace {

constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kSize = 32;
constexpr GeneratedSourceOptions kOptions{.batch = kBatch, .size = kSize};

// Counts its batches, all in the same memory; the batch of `bad_step` cannot be made.
class CountingSource final : public DataLoader {
 public:
  std::int64_t samples() const override { return source_.samples(); }
  void Seek(const Position& position) override { source_.Seek(position); }
  bool Next(HostBatch& batch) override {
    std::this_thread::sleep_for(delay);
    if (taken == bad_step) throw Error(EX_DATAERR, "a bad record");
    ++taken;
    return source_.Next(batch);
  }

  std::int64_t taken = 0;
  std::int64_t bad_step = -1;
  std::chrono::milliseconds delay{0};

 private:
  GeneratedSource source_{kOptions};
};

class BatchFeedOn : public EachBackend {
 protected:
  BatchFeed Feed(std::int64_t end) { return {device_.backend(), device_batch_, source_, end}; }

  std::vector<std::uint8_t> PixelsOf(const InputBatch& batch) {
    return device_.Download<std::uint8_t>(batch.pixels, kBatch * kSize * kSize * 3);
  }

  CountingSource source_;
  DeviceBatch device_batch_{device_.backend(),
                            {.batch_size = kBatch, .height = kSize, .width = kSize}};
};

TEST_P(BatchFeedOn, GivesEachStepItsBatchAndFetchesNoneBeyondTheEnd) {
  constexpr std::int64_t kEnd = 5;
  BatchFeed feed = Feed(kEnd);
  GeneratedSource expected(kOptions);
  for (std::int64_t step = 0; step < kEnd; ++step) {
    const InputBatch batch = feed.Take(step, 1, device_.stream());
    feed.FetchNext(step, device_.stream());
    HostBatch host;
    expected.Next(host);
    EXPECT_EQ(PixelsOf(batch), std::vector<std::uint8_t>(host.pixels.begin(), host.pixels.end()));
    EXPECT_EQ(device_.Download<std::int32_t>(batch.labels, kBatch),
              std::vector<std::int32_t>(host.labels.begin(), host.labels.end()));
    EXPECT_EQ(device_batch_.numbers().host().loss.valid, kBatch);
  }
  EXPECT_EQ(source_.taken, kEnd);
}

TEST_P(BatchFeedOn, IsOneBatchAheadWhereBatchesAreCopied) {
  BatchFeed feed = Feed(9);
  feed.Take(0, 1, device_.stream());
  EXPECT_EQ(source_.taken, 1);
  feed.FetchNext(0, device_.stream());
  EXPECT_EQ(source_.taken, device_.backend().is_host() ? 1 : 2);
}

TEST_P(BatchFeedOn, ABatchThatCannotBeMadeDisturbsTheStepsBeforeItNot) {
  BatchFeed feed = Feed(9);
  source_.bad_step = 1;
  feed.Take(0, 1, device_.stream());
  feed.FetchNext(0, device_.stream());
  EXPECT_THROW(feed.Take(1, 1, device_.stream()), Error);
}

// The weights are those of the images, by their numbers in the run, however these are shared out.
TEST_P(BatchFeedOn, DrawsAWeightForEachImageByItsNumber) {
  constexpr Mixup kMixup{.a = 0.4, .seed = 7};
  const auto drawn = [](std::uint64_t image) {
    Random random(7, RandomPurpose::kMixup, image);
    return static_cast<float>(random.Beta(0.4, 0.4));
  };
  for (const int ranks : {1, 2}) {
    for (int rank = 0; rank < ranks; ++rank) {
      GeneratedSourceOptions options = kOptions;
      options.rank = rank;
      options.ranks = ranks;
      GeneratedSource source(options);
      BatchFeed feed(device_.backend(), device_batch_, source, 9, kMixup);
      source.Seek({4, 20});
      for (std::int64_t step = 4; step < 7; ++step) {
        const InputBatch batch = feed.Take(step, 1, device_.stream());
        std::vector<float> expected;
        const std::int64_t first = 20 + ((step - 4) * ranks + rank) * kBatch;
        for (std::int64_t i = 0; i < kBatch; ++i) {
          expected.push_back(drawn(static_cast<std::uint64_t>(first + i)));
        }
        EXPECT_EQ(device_.Download<float>(batch.lambda, kBatch), expected) << step;
        feed.FetchNext(step, device_.stream());
      }
      feed.Restart(9);
    }
  }
  // An evaluation on the same memory mixes nothing.
  BatchFeed feed = Feed(2);
  source_.Seek({0, 0});
  EXPECT_EQ(feed.Take(0, 1, device_.stream()).lambda, nullptr);
  feed.FetchNext(0, device_.stream());
}

TEST_P(BatchFeedOn, StartsAgainWhereTheSourceWasSentWhateverItHadFetched) {
  BatchFeed feed = Feed(2);
  const InputBatch batch = feed.Take(0, 1, device_.stream());
  const std::uint8_t* const place = batch.pixels;
  const std::vector<std::uint8_t> first = PixelsOf(batch);
  source_.bad_step = 1;
  feed.FetchNext(0, device_.stream());
  source_.bad_step = -1;
  feed.Restart(9);
  source_.Seek({7, 28});
  const InputBatch other = feed.Take(7, 1, device_.stream());
  EXPECT_EQ(other.pixels, place);
  EXPECT_NE(PixelsOf(other), first);
  feed.FetchNext(7, device_.stream());
  feed.Restart(9);
  source_.Seek({0, 0});
  const InputBatch again = feed.Take(0, 1, device_.stream());
  EXPECT_EQ(again.pixels, place);
  EXPECT_EQ(PixelsOf(again), first);
}

TEST_P(BatchFeedOn, AsksASourceThatEndsForNothingMore) {
  GeneratedSource three({.batch = kBatch, .size = kSize, .samples = 3 * kBatch, .training = false});
  BatchFeed feed(device_.backend(), device_batch_, three, 100);
  for (std::int64_t step = 0; step < 3; ++step) {
    ASSERT_TRUE(feed.Has(step, device_.stream())) << step;
    EXPECT_TRUE(feed.Has(step, device_.stream())) << step;
    feed.Take(step, 1, device_.stream());
    feed.FetchNext(step, device_.stream());
  }
  EXPECT_FALSE(feed.Has(3, device_.stream()));
  EXPECT_FALSE(feed.Has(3, device_.stream()));
}

TEST_P(BatchFeedOn, TellsForHowLongTheDeviceLackedABatch) {
  BatchFeed feed = Feed(3);
  source_.delay = std::chrono::milliseconds(5);
  for (std::int64_t step = 0; step < 3; ++step) {
    feed.Take(step, 1, device_.stream());
    feed.FetchNext(step, device_.stream());
    device_.stream().Synchronize();
    EXPECT_GT(feed.waited(), 0.004) << "step " << step;
  }
}

INSTANTIATE_ON_EACH_BACKEND(BatchFeedOn);

}  // namespace
}  // namespace trainer
