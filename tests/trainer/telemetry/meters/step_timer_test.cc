// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/meters/step_timer.h"

#include <gtest/gtest.h>

#include <utility>

#include "trainer/core/error.h"

namespace trainer {
namespace {

StepTimes Times(double forward, double step) {
  StepTimes times;
  times[StepPhase::kForward] = forward;
  times.step = step;
  return times;
}

TEST(StepTimer, HasZeroTimesBeforeTheFirstStep) {
  const StepTimer timer;
  EXPECT_EQ(timer.count(), 0U);
  EXPECT_EQ(timer.Mean().step, 0);
  EXPECT_EQ(timer.Median()[StepPhase::kForward], 0);
}

TEST(StepTimer, TakesMeanAndMedianOfEachPhase) {
  StepTimer timer;
  for (const double forward : {1.0, 2.0, 9.0}) timer.Add(Times(forward, 2 * forward));
  EXPECT_DOUBLE_EQ(timer.Mean()[StepPhase::kForward], 4);
  EXPECT_DOUBLE_EQ(timer.Median()[StepPhase::kForward], 2);
  EXPECT_DOUBLE_EQ(timer.Mean().step, 8);
  EXPECT_DOUBLE_EQ(timer.Median().step, 4);
  EXPECT_EQ(timer.Median()[StepPhase::kUpdate], 0);
}

TEST(StepTimer, TakesTheMiddleOfTheMiddleTwo) {
  StepTimer timer;
  for (const double step : {4.0, 1.0, 2.0, 100.0}) timer.Add(Times(0, step));
  EXPECT_DOUBLE_EQ(timer.Median().step, 3);
}

TEST(StepTimer, LooksAtTheLastStepsOnly) {
  StepTimer timer(2);
  for (const double step : {100.0, 1.0, 3.0}) timer.Add(Times(0, step));
  EXPECT_EQ(timer.count(), 2U);
  EXPECT_DOUBLE_EQ(timer.Mean().step, 2);
}

// A benchmark of any length.
TEST(StepTimer, LooksAtAllOfManySteps) {
  StepTimer timer;
  for (int i = 0; i < 3000; ++i) timer.Add(Times(0, i < 1501 ? 1 : 2));
  EXPECT_EQ(timer.count(), 3000U);
  EXPECT_DOUBLE_EQ(timer.Median().step, 1);
}

TEST(StepTimer, DropsTheOldestFirst) {
  StepTimer timer(2);
  for (const double step : {1.0, 2.0, 3.0, 4.0, 5.0}) timer.Add(Times(0, step));
  EXPECT_DOUBLE_EQ(timer.Mean().step, 4.5);
}

TEST(StepTimer, ForgetsOnReset) {
  StepTimer timer(4);
  timer.Add(Times(0, 100));
  timer.Reset();
  timer.Add(Times(0, 1));
  EXPECT_EQ(timer.count(), 1U);
  EXPECT_DOUBLE_EQ(timer.Mean().step, 1);
}

TEST(StepTimer, RefusesAnEmptyWindow) { EXPECT_THROW(StepTimer(0), Error); }

TEST(StepTimer, NamesItsPhases) {
  EXPECT_EQ(NameOf(StepPhase::kInputWait), "input wait");
  EXPECT_EQ(NameOf(StepPhase::kExposedAllReduce), "exposed all-reduce");
}

TEST(StepTimer, WaitingForOtherRanksIsNotOwnTime) {
  StepTimes times;
  times.step = 100;
  double next = 1;
  for (double& phase : times.phases) phase = std::exchange(next, next * 2);
  EXPECT_DOUBLE_EQ(OwnSeconds(times), 1 + 2 + 4 + 16);
}

}  // namespace
}  // namespace trainer
