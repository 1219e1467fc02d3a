// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/meters/roofline.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

TEST(Roofline, KnowsCardsByTheNamesOfTheDriver) {
  const auto bandwidth = [](std::string_view name) {
    const auto peak = PeakOfCard(name);
    return peak ? peak->bytes_per_second : 0;
  };
  EXPECT_EQ(bandwidth("NVIDIA H200"), 4800e9);
  EXPECT_EQ(bandwidth("NVIDIA H100 80GB HBM3"), 3352e9);
  EXPECT_EQ(bandwidth("NVIDIA A100-SXM4-80GB"), 2039e9);
  EXPECT_EQ(bandwidth("NVIDIA A100-SXM4-40GB"), 1555e9);
  EXPECT_EQ(bandwidth("Tesla V100-SXM2-32GB"), 900e9);
}

TEST(Roofline, SaysNothingOfOtherCards) {
  EXPECT_FALSE(PeakOfCard("NVIDIA GeForce RTX 3060"));
  EXPECT_FALSE(PeakOfCard(""));
}

TEST(Roofline, IsReachedWhereOneOfTheTwoIsUsedUp) {
  const ImageWork work = {20e9, 100e6};
  const CardPeak peak = {100e12, 1000e9};  // 5,000 images/s by computing, 10,000 by moving
  EXPECT_DOUBLE_EQ(ShareOfRoofline(work, peak, 5000).both(), 1);
  EXPECT_DOUBLE_EQ(ShareOfRoofline(work, peak, 2500).compute, 0.5);
  EXPECT_DOUBLE_EQ(ShareOfRoofline(work, peak, 2500).memory, 0.25);
}

// Of the table that the work of an image was taken from: 5,144 images/s on a V100 by computing
// alone, and 18,545 on an H200 by moving alone.
TEST(Roofline, OfResNet50IsThatOfItsSource) {
  EXPECT_NEAR(ShareOfRoofline(kResNet50Work, *PeakOfCard("Tesla V100-SXM2-16GB"), 5144).compute, 1,
              1e-3);
  EXPECT_NEAR(ShareOfRoofline(kResNet50Work, *PeakOfCard("NVIDIA H200"), 18545).memory, 1, 1e-3);
}

}  // namespace
}  // namespace trainer
