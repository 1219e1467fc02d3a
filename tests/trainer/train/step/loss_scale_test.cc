// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/loss_scale.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

void GoodSteps(LossScale& scale, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) ASSERT_TRUE(scale.Update(false));
}

TEST(LossScale, StaticNeverMovesAndCannotTakeAnOverflow) {
  LossScale scale = LossScale::Static(256);
  GoodSteps(scale, 5000);
  EXPECT_EQ(scale.scale(), 256);
  EXPECT_FALSE(scale.Update(true));
  EXPECT_EQ(scale.scale(), 256);
}

TEST(LossScale, DynamicDoublesAfterTwoThousandGoodSteps) {
  LossScale scale = LossScale::Dynamic(256);
  GoodSteps(scale, 1999);
  EXPECT_EQ(scale.scale(), 256);
  GoodSteps(scale, 1);
  EXPECT_EQ(scale.scale(), 512);
  EXPECT_EQ(scale.good_steps(), 0);
}

TEST(LossScale, DynamicHalvesOnOverflowAndCountsAnew) {
  LossScale scale = LossScale::Dynamic(256);
  GoodSteps(scale, 1999);
  EXPECT_TRUE(scale.Update(true));
  EXPECT_EQ(scale.scale(), 128);
  GoodSteps(scale, 1999);
  EXPECT_EQ(scale.scale(), 128);
}

TEST(LossScale, DynamicGivesUpBelowOne) {
  LossScale scale = LossScale::Dynamic(2);
  EXPECT_TRUE(scale.Update(true));
  EXPECT_EQ(scale.scale(), 1);
  EXPECT_FALSE(scale.Update(true));
}

TEST(LossScale, DynamicStopsGrowingAtTheLargest) {
  LossScale scale = LossScale::Dynamic(LossScale::kLargest);
  GoodSteps(scale, 2000);
  EXPECT_EQ(scale.scale(), LossScale::kLargest);
}

TEST(LossScale, RestoredGoesOnWhereItWas) {
  LossScale scale = LossScale::Dynamic(256);
  scale.Restore(64, 1999);
  GoodSteps(scale, 1);
  EXPECT_EQ(scale.scale(), 128);

  LossScale fixed = LossScale::Static(256);
  fixed.Restore(64, 3);
  EXPECT_EQ(fixed.scale(), 256);
}

}  // namespace
}  // namespace trainer
