// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/iteration_durations.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

TEST(IterationDurations, AreThoseOfTheStudysProgram) {
  EXPECT_EQ(DurationsHead(5, 8, 1), "rank = 5, world_size = 8, device_ids = 1\n");
  EXPECT_EQ(IterationDuration(3, 1, 0.25), "\nIteration Duration 3 1 : 0.25\n");
  EXPECT_EQ(IterationDuration(0, 0, 1e-5), "\nIteration Duration 0 0 : 1e-05\n");
}

// Readers take six digits behind the point for granted.
TEST(IterationDurations, TheTimeOfATrainingHasHoursMinutesSeconds) {
  EXPECT_EQ(TrainingTime(62.345678), "\nTraining time: 0:01:02.345678\n");
  EXPECT_EQ(TrainingTime(3600 * 12 + 60 * 34 + 56), "\nTraining time: 12:34:56.000000\n");
  EXPECT_EQ(TrainingTime(59.9999999), "\nTraining time: 0:01:00.000000\n");
}

}  // namespace
}  // namespace trainer
