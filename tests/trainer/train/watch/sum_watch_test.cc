// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/watch/sum_watch.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace trainer {
namespace {

// Steps in which the busier of two ranks computes for a second; the last thing that is said.
std::optional<SumChange> After(SumWatch& watch, std::int64_t steps, double waited) {
  std::optional<SumChange> said;
  for (std::int64_t i = 0; i < steps; ++i) {
    if (const auto change = watch.Add(1 + waited, std::vector{0.5, 1.0})) {
      EXPECT_FALSE(said.has_value()) << "one thing at a time";
      said = change;
    }
  }
  return said;
}

TEST(SumWatch, TellsOfATwentiethOfAStepAfterAHundredSteps) {
  SumWatch watch;
  EXPECT_FALSE(After(watch, 100, 0.1));
  EXPECT_FALSE(After(watch, 99, 0.16));
  const auto change = After(watch, 1, 0.16);
  ASSERT_TRUE(change.has_value());
  EXPECT_TRUE(change->begins);
  EXPECT_EQ(change->steps, 100);
  EXPECT_NEAR(change->seconds, 0.16, 1e-9);
  EXPECT_NEAR(change->best, 0.1, 1e-9);
  EXPECT_NEAR(change->step, 1.16, 1e-9);
  EXPECT_FALSE(After(watch, 1000, 0.16)) << "once";
}

TEST(SumWatch, SaysNothingOfLess) {
  SumWatch watch;
  EXPECT_FALSE(After(watch, 100, 0.1));
  EXPECT_FALSE(After(watch, 1000, 0.157)) << "0.057 of 1.157";
}

TEST(SumWatch, OneTenOfGoodStepsBeginsAfresh) {
  SumWatch watch;
  EXPECT_FALSE(After(watch, 100, 0));
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(After(watch, 90, 0.5));
    EXPECT_FALSE(After(watch, 10, 0));
  }
  EXPECT_TRUE(After(watch, 100, 0.5));
}

TEST(SumWatch, TellsWhenItHasBeenOverForAHundredSteps) {
  SumWatch watch;
  EXPECT_FALSE(After(watch, 100, 0));
  EXPECT_TRUE(After(watch, 130, 0.5));
  EXPECT_FALSE(After(watch, 99, 0));
  const auto change = After(watch, 1, 0);
  ASSERT_TRUE(change.has_value());
  EXPECT_FALSE(change->begins);
  EXPECT_EQ(change->steps, 130);
  EXPECT_TRUE(After(watch, 100, 0.5)) << "a new spell";
}

TEST(SumWatch, WhatIsSlowFromTheFirstStepIsTheMeasure) {
  SumWatch watch;
  EXPECT_FALSE(After(watch, 1000, 0.5));
  EXPECT_FALSE(After(watch, 1000, 0)) << "better is no change";
  EXPECT_TRUE(After(watch, 100, 0.5));
}

// It makes all ranks wait, but not the busiest.
TEST(SumWatch, ASlowRankIsNoLongSum) {
  SumWatch watch;
  EXPECT_FALSE(After(watch, 100, 0.1));
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(watch.Add(2.1, std::vector{0.5, 2.0}));
}

TEST(SumWatch, WhatIsNotKnownCountsAsNoWait) {
  SumWatch watch;
  EXPECT_FALSE(After(watch, 100, 0.1));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(watch.Add(2, std::vector{0.0, nan}));
  for (int i = 0; i < 99; ++i) EXPECT_FALSE(watch.Add(2, std::vector{nan, 1.0}));
  EXPECT_TRUE(watch.Add(2, std::vector{nan, 1.0})) << "of those that are known the busiest";
}

}  // namespace
}  // namespace trainer
