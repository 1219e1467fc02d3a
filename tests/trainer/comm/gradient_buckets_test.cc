// SPDX-License-Identifier: Apache-2.0

#include "trainer/comm/gradient_buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "trainer/core/error.h"

namespace trainer {
namespace {

using ::testing::ElementsAre;

constexpr std::size_t kMega = std::size_t{1} << 20;

// For gradients of one byte.
constexpr GradientBucketBytes kSmall = {.first = 2, .rest = 4, .last = 3};

TEST(GradientBuckets, StartSmallAndRunFromTheEndToTheStart) {
  // 1 MiB of the last tensor closes the first bucket at once.
  const std::vector<std::size_t> ends = {5 * kMega, 6 * kMega, 7 * kMega, 8 * kMega};
  EXPECT_THAT(PlanGradientBuckets(ends, 4),
              ElementsAre(GradientBucket{7 * kMega, kMega}, GradientBucket{0, 7 * kMega}));
}

TEST(GradientBuckets, AreClosedAtTensorBoundariesWhenFull) {
  const std::vector<std::size_t> ends = {1, 3, 6, 10, 15};
  EXPECT_THAT(PlanGradientBuckets(ends, 1, kSmall),
              ElementsAre(GradientBucket{10, 5}, GradientBucket{6, 4}, GradientBucket{1, 5},
                          GradientBucket{0, 1}));
}

TEST(GradientBuckets, EndWithASmallOneWhereMoreIsLeftOver) {
  // 7 are left over, of which 3 may be the last.
  const std::vector<std::size_t> ends = {1, 2, 3, 7, 9};
  const GradientBucketBytes large = {.first = 2, .rest = 100, .last = 3};
  EXPECT_THAT(PlanGradientBuckets(ends, 1, large),
              ElementsAre(GradientBucket{7, 2}, GradientBucket{3, 4}, GradientBucket{0, 3}));
  // Of 2 bytes each, 1 may.
  EXPECT_THAT(PlanGradientBuckets(ends, 2, large),
              ElementsAre(GradientBucket{7, 2}, GradientBucket{1, 6}, GradientBucket{0, 1}));
}

TEST(GradientBuckets, LeaveTheOneBeforeTheLastItsLeastSize) {
  // 4 are left over: cut at 3 they would be 1 and 3.
  const std::vector<std::size_t> ends = {1, 2, 3, 4, 6};
  const GradientBucketBytes large = {.first = 2, .rest = 100, .last = 3};
  EXPECT_THAT(PlanGradientBuckets(ends, 1, large),
              ElementsAre(GradientBucket{4, 2}, GradientBucket{2, 2}, GradientBucket{0, 2}));
  // So are 4 here: no cut leaves both what they need.
  const std::vector<std::size_t> apart = {3, 4, 6};
  EXPECT_THAT(PlanGradientBuckets(apart, 1, large),
              ElementsAre(GradientBucket{4, 2}, GradientBucket{0, 4}));
}

TEST(GradientBuckets, AreNotCutWhereTheLastIsSmall) {
  const std::vector<std::size_t> ends = {1, 2, 3, 5};
  EXPECT_THAT(PlanGradientBuckets(ends, 1, {.first = 2, .rest = 100, .last = 3}),
              ElementsAre(GradientBucket{3, 2}, GradientBucket{0, 3}));
  // Not even the first was full.
  EXPECT_THAT(PlanGradientBuckets(ends, 1, {.first = 6, .rest = 100, .last = 3}),
              ElementsAre(GradientBucket{0, 5}));
}

// Where the gradients of torchvision's ResNets of bottlenecks end: of one type, each at a multiple
// of 16 elements.
std::vector<std::size_t> EndsOfResNet(const std::array<int, 4>& blocks) {
  std::vector<std::size_t> ends;
  std::size_t end = 0;
  const auto add = [&](std::size_t elements) { ends.push_back(end += (elements + 15) / 16 * 16); };
  const auto add_convolution = [&](std::size_t weights, std::size_t channels) {
    add(weights);
    add(channels);
    add(channels);
  };
  add_convolution(std::size_t{64} * 3 * 7 * 7, 64);
  std::size_t channels = 64;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const std::size_t width = std::size_t{64} << stage;
    for (int block = 0; block < blocks[stage]; ++block) {
      add_convolution(channels * width, width);
      add_convolution(width * width * 9, width);
      add_convolution(width * width * 4, width * 4);
      if (block == 0) add_convolution(channels * width * 4, width * 4);
      channels = width * 4;
    }
  }
  add(channels * 1000);
  add(1000);
  return ends;
}

// In MB of fp32: the classifier 8.2; stage 4 and the end of stage 3 31.5, 26.3 and 26.6; from the
// downsampling of stage 3 to that of stage 2 8.7; stage 1 and the stem 1.0.
TEST(GradientBuckets, OfResNet50AreSix) {
  EXPECT_THAT(PlanGradientBuckets(EndsOfResNet({3, 4, 6, 3}), 4),
              ElementsAre(GradientBucket{23508032, 2049008}, GradientBucket{15632448, 7875584},
                          GradientBucket{9068608, 6563840}, GradientBucket{2431040, 6637568},
                          GradientBucket{258368, 2172672}, GradientBucket{0, 258368}));
}

// 25 MiB hold twice as many.
TEST(GradientBuckets, OfResNet50In16BitsAreFour) {
  EXPECT_THAT(PlanGradientBuckets(EndsOfResNet({3, 4, 6, 3}), 2),
              ElementsAre(GradientBucket{23508032, 2049008}, GradientBucket{9068608, 14439424},
                          GradientBucket{472640, 8595968}, GradientBucket{0, 472640}));
}

TEST(GradientBuckets, OfDeeperResNetsEndAsSmall) {
  for (const auto& blocks : {std::array{3, 4, 23, 3}, std::array{3, 8, 36, 3}}) {
    const std::vector<std::size_t> ends = EndsOfResNet(blocks);
    const auto buckets = PlanGradientBuckets(ends, 4);
    EXPECT_EQ(buckets.back(), (GradientBucket{0, 258368}));
    std::size_t end = ends.back();
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      EXPECT_EQ(buckets[i].begin + buckets[i].count, end);
      end = buckets[i].begin;
      if (i + 1 == buckets.size()) break;
      const bool is_full = i > 0 && i + 2 < buckets.size();
      EXPECT_GE(buckets[i].count * 4, is_full ? 25 * kMega : kMega);
      EXPECT_THAT(ends, ::testing::Contains(end));
    }
    EXPECT_EQ(end, 0U);
  }
}

TEST(GradientBuckets, AreNoneForNoGradients) {
  EXPECT_TRUE(PlanGradientBuckets({}, 4).empty());
  const std::vector<std::size_t> empty = {0, 0};
  EXPECT_TRUE(PlanGradientBuckets(empty, 4).empty());
}

TEST(GradientBuckets, RefuseEndsThatDescend) {
  const std::vector<std::size_t> ends = {5, 3};
  EXPECT_THROW(PlanGradientBuckets(ends, 4), Error);
}

}  // namespace
}  // namespace trainer
