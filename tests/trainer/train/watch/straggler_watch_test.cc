// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/watch/straggler_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "tests/trainer/train/thread_ranks.h"
#include "trainer/train/watch/stragglers.h"

namespace trainer {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// What is said in `steps` steps like this.
std::vector<StragglerChange> After(StragglerWatch& watch, std::int64_t steps,
                                   const std::vector<double>& own_seconds) {
  std::vector<StragglerChange> all;
  for (std::int64_t step = 0; step < steps; ++step) {
    for (const StragglerChange& change : watch.Add(own_seconds)) all.push_back(change);
  }
  return all;
}

TEST(StragglerWatch, TellsOfTwentyPercentAfterAHundredStepsOnce) {
  StragglerWatch watch(4);
  EXPECT_THAT(After(watch, 99, {0.1, 0.1, 0.12, 0.1}), IsEmpty());
  const auto changes = After(watch, 1, {0.1, 0.1, 0.12, 0.1});
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].rank, 2);
  EXPECT_TRUE(changes[0].begins);
  EXPECT_EQ(changes[0].steps, 100);
  EXPECT_NEAR(changes[0].seconds, 0.12, 1e-9);
  EXPECT_NEAR(changes[0].median, 0.1, 1e-9);
  EXPECT_THAT(After(watch, 1000, {0.1, 0.1, 0.12, 0.1}), IsEmpty());
}

TEST(StragglerWatch, SaysNothingOfNineteenPercent) {
  StragglerWatch watch(4);
  EXPECT_THAT(After(watch, 1000, {0.1, 0.1, 0.119, 0.1}), IsEmpty());
}

TEST(StragglerWatch, TellsWhenItHasBeenOverForAHundredSteps) {
  StragglerWatch watch(3);
  EXPECT_THAT(After(watch, 150, {1, 2, 1}), SizeIs(1));
  EXPECT_THAT(After(watch, 99, {1, 1, 1}), IsEmpty());
  const auto changes = After(watch, 1, {1, 1, 1});
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].rank, 1);
  EXPECT_FALSE(changes[0].begins);
  EXPECT_EQ(changes[0].steps, 150);
  EXPECT_THAT(After(watch, 100, {1, 2, 1}), SizeIs(1)) << "a new spell";
}

TEST(StragglerWatch, ASpellGoesOnAfterAFewQuickSteps) {
  StragglerWatch watch(3);
  EXPECT_THAT(After(watch, 100, {1, 2, 1}), SizeIs(1));
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(After(watch, 90, {1, 1, 1}), IsEmpty());
    EXPECT_THAT(After(watch, 10, {1, 2, 1}), IsEmpty());
  }
  const auto changes = After(watch, 100, {1, 1, 1});
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].steps, 600);
}

TEST(StragglerWatch, OneLongStepIsNoHundred) {
  StragglerWatch watch(3);
  EXPECT_THAT(After(watch, 50, {1, 1, 1}), IsEmpty());
  EXPECT_THAT(After(watch, 1, {1, 1000, 1}), IsEmpty());
  EXPECT_THAT(After(watch, 500, {1, 1, 1}), IsEmpty());
}

TEST(StragglerWatch, SlowInNineBlocksIsNotSlowInTen) {
  StragglerWatch watch(3);
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(After(watch, 90, {1, 2, 1}), IsEmpty());
    EXPECT_THAT(After(watch, 10, {1, 1, 1}), IsEmpty());
  }
}

TEST(StragglerWatch, OfTwoRanksTheQuickerIsTheMeasure) {
  StragglerWatch watch(2);
  const auto changes = After(watch, 100, {1.25, 1});
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].rank, 0);
  EXPECT_DOUBLE_EQ(changes[0].median, 1);
}

TEST(StragglerWatch, OneRankHasNoneToBeComparedWith) {
  StragglerWatch watch(1);
  EXPECT_THAT(After(watch, 300, {1}), IsEmpty());
}

TEST(StragglerWatch, TwoRanksOfFiveAreToldInTheirOrder) {
  StragglerWatch watch(5);
  const auto changes = After(watch, 100, {1, 1, 3, 1, 2});
  ASSERT_THAT(changes, SizeIs(2));
  EXPECT_EQ(changes[0].rank, 2);
  EXPECT_EQ(changes[1].rank, 4);
}

TEST(StragglerWatch, WhatIsNotKnownIsNotJudged) {
  StragglerWatch watch(3);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(After(watch, 200, {0, 0, 0}), IsEmpty());
  EXPECT_THAT(After(watch, 200, {nan, nan, nan}), IsEmpty());
  EXPECT_THAT(After(watch, 90, {1, 2, 1}), IsEmpty());
  EXPECT_THAT(After(watch, 10, {1, nan, 1}), IsEmpty());
  EXPECT_THAT(After(watch, 10, {1, 0, 1}), IsEmpty());
  EXPECT_THAT(After(watch, 10, {1, -1, 1}), IsEmpty());
  EXPECT_THAT(After(watch, 10, {1, 2, 1}), SizeIs(1)) << "unknown steps neither count nor break it";
}

TEST(Stragglers, TellsWhatTheRankSaysOfItselfInTheLogOfRankZero) {
  std::vector<std::ostringstream> logs(3);
  RunRanks(3, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    Stragglers stragglers({communicator,
                           MakeLogger(logs[static_cast<std::size_t>(rank)], rank, "info"),
                           "node" + std::to_string(rank),
                           [rank] { return "GPU " + std::to_string(rank) + ": 84 C"; }});
    StepTimes times;
    times[StepPhase::kForward] = 0.05 * (rank + 1);
    times[StepPhase::kExposedAllReduce] = 9;
    for (int step = 0; step < 150; ++step) stragglers.After(std::vector{1.0, 1.0, 1.5}, times);
    for (int step = 0; step < 100; ++step) stragglers.After(std::vector{1.0, 1.0, 1.0}, times);
  });
  EXPECT_THAT(logs[0].str(),
              HasSubstr("rank 2 on node2 has been 50 % slower than the median of the ranks for 100 "
                        "steps: in each it is busy for 1500.0 ms, they for 1000.0 (ms: input wait "
                        "0.0, forward 150.0, backward 0.0, update 0.0; GPU 2: 84 C)"));
  EXPECT_THAT(logs[0].str(), HasSubstr("rank 2 on node2 is no longer slower than the other ranks; "
                                       "it was for 150 steps"));
  EXPECT_EQ(logs[1].str() + logs[2].str(), "");
}

TEST(Stragglers, CutsLongLists) {
  std::ostringstream log;
  RunRanks(21, [&](Communicator& communicator) {
    std::ostringstream other;
    Stragglers stragglers(
        {communicator, MakeLogger(communicator.rank() == 0 ? log : other, 0, "info"), "", {}});
    std::vector<double> seconds(21, 1);
    std::fill_n(seconds.begin(), 10, 2);
    for (int step = 0; step < 100; ++step) stragglers.After(seconds, {});
  });
  EXPECT_THAT(log.str(), HasSubstr("rank 7 has been 100 % slower"));
  EXPECT_THAT(log.str(), testing::Not(HasSubstr("rank 8 has")));
  EXPECT_THAT(log.str(), HasSubstr("the same of 2 more ranks"));
}

}  // namespace
}  // namespace trainer
