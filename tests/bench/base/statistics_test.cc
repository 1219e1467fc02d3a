// SPDX-License-Identifier: Apache-2.0

#include "bench/base/statistics.h"

#include <gtest/gtest.h>

#include <vector>

#include "trainer/core/error.h"

namespace bench {
namespace {

const std::vector<double> kValues = {2, 4, 4, 4, 5, 5, 7, 9};

TEST(StatisticsOf, IsThatOfTheValuesThemselves) {
  const Statistics all = StatisticsOf(kValues);
  EXPECT_DOUBLE_EQ(all.mean, 5);
  EXPECT_DOUBLE_EQ(all.sd, 2);
  EXPECT_EQ(all.min, 2);
  EXPECT_EQ(all.max, 9);
  EXPECT_EQ(all.count, 8U);
}

TEST(SampleStatisticsOf, DividesByOneLess) {
  EXPECT_DOUBLE_EQ(SampleStatisticsOf(kValues).sd, 2.138089935299395);  // sqrt(32 / 7)
  EXPECT_DOUBLE_EQ(SampleStatisticsOf(kValues).mean, 5);
}

TEST(Statistics, OfOneValueHaveNoSpread) {
  const std::vector<double> one = {3.5};
  for (const Statistics& all : {StatisticsOf(one), SampleStatisticsOf(one)}) {
    EXPECT_EQ(all.mean, 3.5);
    EXPECT_EQ(all.sd, 0);
    EXPECT_EQ(all.min, 3.5);
    EXPECT_EQ(all.max, 3.5);
  }
}

// Two passes: a large mean leaves the spread as it is.
TEST(Statistics, AreNotLostBesideALargeMean) {
  const std::vector<double> values = {1e9 + 1, 1e9 + 3};
  EXPECT_DOUBLE_EQ(StatisticsOf(values).sd, 1);
}

TEST(QuantileOf, LiesBetweenTwoNeighboursInProportion) {
  const std::vector<double> sorted = {1, 2, 4, 8};
  EXPECT_EQ(QuantileOf(sorted, 0), 1);
  EXPECT_EQ(QuantileOf(sorted, 0.5), 3);
  EXPECT_EQ(QuantileOf(sorted, 0.75), 5);
  EXPECT_EQ(QuantileOf(sorted, 1), 8);
  EXPECT_EQ(QuantileOf(std::vector<double>{7}, 0.9), 7);
}

TEST(QuantileOf, RefusesWhatIsNoProbability) {
  const std::vector<double> sorted = {1, 2};
  EXPECT_THROW(QuantileOf(sorted, -0.1), trainer::Error);
  EXPECT_THROW(QuantileOf(sorted, 1.1), trainer::Error);
  EXPECT_THROW(QuantileOf({}, 0.5), trainer::Error);
}

TEST(MedianOf, IsTheMiddleOneOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(MedianOf({5, 1, 9}), 5);
  EXPECT_EQ(MedianOf({9, 1, 4, 6}), 5);
  EXPECT_EQ(MedianOf({7}), 7);
}

TEST(Statistics, NeedAValue) {
  EXPECT_THROW(StatisticsOf({}), trainer::Error);
  EXPECT_THROW(MedianOf({}), trainer::Error);
}

TEST(RunningStatistics, IsThatOfTheSample) {
  RunningStatistics running;
  EXPECT_EQ(running.Sample().count, 0U);
  for (const double value : kValues) running.Add(value);
  const Statistics all = running.Sample();
  const Statistics expected = SampleStatisticsOf(kValues);
  EXPECT_DOUBLE_EQ(all.mean, expected.mean);
  EXPECT_DOUBLE_EQ(all.sd, expected.sd);
  EXPECT_EQ(all.min, 2);
  EXPECT_EQ(all.max, 9);
  EXPECT_EQ(all.count, 8U);
}

TEST(RunningStatistics, IsNotLostBesideALargeMean) {
  RunningStatistics running;
  for (const double value : {1e9 + 1, 1e9 + 3, 1e9 + 2}) running.Add(value);
  EXPECT_DOUBLE_EQ(running.Sample().sd, 1);
}

TEST(RunningStatistics, OfOneValueHasNoSpread) {
  RunningStatistics running;
  running.Add(-2);
  EXPECT_EQ(running.Sample().sd, 0);
  EXPECT_EQ(running.Sample().min, -2);
  EXPECT_EQ(running.Sample().max, -2);
}

}  // namespace
}  // namespace bench
