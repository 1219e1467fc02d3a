// SPDX-License-Identifier: Apache-2.0

#include "trainer/control/time_limit.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

constexpr double kStart = 1'000'000;

TEST(TimeLimit, KeepsAMinuteUntilACheckpointWasTimed) {
  TimeLimit limit(kStart, kStart + 3600, {});
  EXPECT_EQ(limit.margin(), 60);
  EXPECT_FALSE(limit.IsDue(kStart + 3539.9));
  EXPECT_TRUE(limit.IsDue(kStart + 3540));
}

TEST(TimeLimit, KeepsTwiceTheLongestOfTheLastFiveCheckpointsAndTenSeconds) {
  TimeLimit limit(kStart, kStart + 3600, {});
  limit.CheckpointTook(100);
  EXPECT_EQ(limit.margin(), 210);
  for (const double seconds : {1, 2, 7, 4}) limit.CheckpointTook(seconds);
  EXPECT_EQ(limit.margin(), 210);
  limit.CheckpointTook(5);
  EXPECT_EQ(limit.margin(), 24);
}

// One that is being written is finished first.
TEST(TimeLimit, CountsCheckpointsTwiceWhileOneIsBeingWritten) {
  TimeLimit limit(kStart, kStart + 3600, {});
  limit.CheckpointBegan();
  EXPECT_EQ(limit.margin(), 60);
  limit.CheckpointTook(100);
  EXPECT_EQ(limit.margin(), 210);
  limit.CheckpointBegan();
  EXPECT_EQ(limit.margin(), 410);
  limit.CheckpointTook(1);
  EXPECT_EQ(limit.margin(), 210);
}

TEST(TimeLimit, KeepsTheLongestOfTheLastStepsToo) {
  TimeLimit limit(kStart, kStart + 3600, {});
  limit.StepTook(30);
  limit.StepTook(2);
  EXPECT_EQ(limit.margin(), 90);
  for (int i = 0; i < 19; ++i) limit.StepTook(3);
  EXPECT_EQ(limit.margin(), 63);
}

// Else a job of a minute would end as soon as it began.
TEST(TimeLimit, KeepsAQuarterOfAShortJob) {
  TimeLimit limit(kStart, kStart + 20, {});
  EXPECT_EQ(limit.margin(), 5);
  limit.CheckpointTook(1);
  EXPECT_EQ(limit.margin(), 7);
}

TEST(TimeLimit, KeepsWhatItIsToldAndAStep) {
  TimeLimit limit(kStart, kStart + 3600, 300);
  limit.CheckpointTook(1000);
  limit.StepTook(2);
  EXPECT_EQ(limit.margin(), 302);
}

}  // namespace
}  // namespace trainer
