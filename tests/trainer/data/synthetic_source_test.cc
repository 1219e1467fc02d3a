// SPDX-License-Identifier: Apache-2.0

#include "trainer/data/synthetic_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace trainer {
namespace {

std::vector<std::uint8_t> FirstPixels(const SyntheticSourceOptions& options) {
  const auto source = MakeSyntheticSource(options);
  HostBatch batch;
  EXPECT_TRUE(source->Next(batch));
  return {batch.pixels.begin(), batch.pixels.end()};
}

TEST(SyntheticSource, PixelsAreATruncatedNormalDistribution) {
  const auto pixels = FirstPixels({.batch_size = 4, .image_size = 64});
  double sum = 0;
  double squares = 0;
  for (const std::uint8_t pixel : pixels) {
    sum += pixel;
    squares += static_cast<double>(pixel) * pixel;
  }
  const double mean = sum / static_cast<double>(pixels.size());
  EXPECT_NEAR(mean, 127, 1);
  // Cut at two deviations, a normal distribution's deviation shrinks by 0.8796.
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(pixels.size()) - mean * mean), 52.8, 1);
  EXPECT_EQ(*std::ranges::min_element(pixels), 7);
  EXPECT_EQ(*std::ranges::max_element(pixels), 247);
}

TEST(SyntheticSource, LabelsAreClasses) {
  const auto source = MakeSyntheticSource({.batch_size = 64, .image_size = 2, .classes = 3});
  HostBatch batch;
  ASSERT_TRUE(source->Next(batch));
  EXPECT_THAT(batch.labels, ::testing::Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(3))));
  EXPECT_THAT(batch.labels, ::testing::Contains(2));
}

TEST(SyntheticSource, TwoRanksSeeWhatOneWithTwiceTheBatchSees) {
  const auto one = FirstPixels({.batch_size = 4, .image_size = 8});
  auto two = FirstPixels({.batch_size = 2, .image_size = 8, .world_size = 2});
  const auto other = FirstPixels({.batch_size = 2, .image_size = 8, .rank = 1, .world_size = 2});
  two.insert(two.end(), other.begin(), other.end());
  EXPECT_EQ(one, two);
}

TEST(SyntheticSource, TrainingGivesTheSameBatchAtEachStep) {
  const auto source = MakeSyntheticSource({.batch_size = 2, .image_size = 8});
  source->Seek({41, 82});
  HostBatch batch;
  ASSERT_TRUE(source->Next(batch));
  EXPECT_EQ(batch.step, 41);
  EXPECT_EQ(batch.valid, 2);
  const std::vector<std::uint8_t> before(batch.pixels.begin(), batch.pixels.end());
  ASSERT_TRUE(source->Next(batch));
  EXPECT_EQ(batch.step, 42);
  EXPECT_TRUE(std::ranges::equal(before, batch.pixels));
}

TEST(SyntheticSource, BatchesAreInTheMemoryThatItIsGiven) {
  const std::byte* given = nullptr;
  const auto allocate = [&](std::size_t bytes) {
    Buffer buffer = AllocateOrdinaryMemory(bytes);
    given = buffer.data();
    return buffer;
  };
  const auto source = MakeSyntheticSource({.batch_size = 2, .image_size = 8, .allocate = allocate});
  HostBatch batch;
  ASSERT_TRUE(source->Next(batch));
  EXPECT_EQ(reinterpret_cast<const std::byte*>(batch.pixels.data()), given);
}

TEST(SyntheticSource, EvaluationEnds) {
  const auto source = MakeSyntheticSource({.batch_size = 2,
                                           .image_size = 8,
                                           .rank = 1,
                                           .world_size = 2,
                                           .training = false,
                                           .samples = 7});
  HostBatch batch;
  ASSERT_TRUE(source->Next(batch));
  EXPECT_EQ(batch.valid, 2);
  ASSERT_TRUE(source->Next(batch));
  EXPECT_EQ(batch.valid, 1);
  EXPECT_FALSE(source->Next(batch));
}

}  // namespace
}  // namespace trainer
