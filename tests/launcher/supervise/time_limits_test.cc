// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/time_limits.h"

#include <gtest/gtest.h>

namespace launcher {
namespace {

using Over = TimeLimits::Over;
using std::chrono::milliseconds;

constexpr milliseconds kStart{100};
constexpr milliseconds kEnd{1000};

TimeLimits::Clock::time_point At(int ms) { return TimeLimits::Clock::time_point(milliseconds(ms)); }

TEST(TimeLimits, OfAStart) {
  TimeLimits limits(kStart, kEnd, 2);
  EXPECT_FALSE(limits.is_starting());
  EXPECT_EQ(limits.deadline(), std::nullopt);
  limits.ExpectStart(At(10));
  EXPECT_TRUE(limits.is_starting());
  EXPECT_EQ(limits.deadline(), At(110));
  limits.SetStarted(1, At(50));
  EXPECT_EQ(limits.Look(At(109)), Over::kNothing);
  EXPECT_EQ(limits.Look(At(110)), Over::kStart);
  limits.SetStarted(2, At(111));
  EXPECT_FALSE(limits.is_starting());
  EXPECT_EQ(limits.Look(At(100000)), Over::kNothing);
}

TEST(TimeLimits, OfAStartDoesNotCountTheWaitForResources) {
  TimeLimits limits(kStart, kEnd, 2);
  limits.ExpectStart(At(0));
  limits.AwaitResources();
  EXPECT_EQ(limits.Look(At(5000)), Over::kNothing);
  limits.BeginAnew(At(5000));  // they still wait
  EXPECT_EQ(limits.deadline(), std::nullopt);
  limits.ExpectStart(At(6000));
  EXPECT_EQ(limits.Look(At(6100)), Over::kStart);
}

TEST(TimeLimits, OfAStartEndWhereNobodyHearsOfIt) {
  TimeLimits limits(kStart, kEnd, 2);
  limits.ExpectStart(At(0));
  limits.GiveStartUp();
  EXPECT_EQ(limits.Look(At(5000)), Over::kNothing);
  limits.SetEnded(1, At(5000));
  EXPECT_EQ(limits.Look(At(6000)), Over::kEnd);
}

TEST(TimeLimits, OfAnEndBeginWithTheFirstRank) {
  TimeLimits limits(kStart, kEnd, 3);
  limits.SetEnded(0, At(10));
  EXPECT_EQ(limits.deadline(), std::nullopt);
  limits.SetEnded(1, At(10));
  limits.SetEnded(2, At(500));
  limits.AwaitResources();  // only of a start
  EXPECT_EQ(limits.Look(At(1009)), Over::kNothing);
  EXPECT_EQ(limits.Look(At(1010)), Over::kEnd);
  limits.SetEnded(3, At(1011));
  EXPECT_EQ(limits.Look(At(100000)), Over::kNothing);
}

TEST(TimeLimits, OfAnEndBeginWhenAllHaveStarted) {
  TimeLimits limits(kStart, kEnd, 2);
  limits.ExpectStart(At(0));
  limits.SetEnded(1, At(10));
  EXPECT_EQ(limits.deadline(), At(100));
  limits.SetStarted(2, At(50));
  EXPECT_EQ(limits.deadline(), At(1050));
}

TEST(TimeLimits, BeginAnew) {
  TimeLimits limits(kStart, kEnd, 2);
  limits.ExpectStart(At(0));
  limits.BeginAnew(At(100));
  EXPECT_EQ(limits.deadline(), At(200));
  limits.SetStarted(2, At(150));
  limits.BeginAnew(At(150));
  EXPECT_EQ(limits.deadline(), std::nullopt);
  limits.SetEnded(1, At(200));
  limits.BeginAnew(At(1200));
  EXPECT_EQ(limits.deadline(), At(2200));
}

TEST(TimeLimits, AreNoneWhereTheyAreZero) {
  TimeLimits limits(milliseconds(0), milliseconds(0), 2);
  limits.ExpectStart(At(0));
  EXPECT_EQ(limits.Look(At(100000)), Over::kNothing);
  limits.SetStarted(2, At(0));
  limits.SetEnded(1, At(0));
  EXPECT_EQ(limits.Look(At(100000)), Over::kNothing);
}

}  // namespace
}  // namespace launcher
