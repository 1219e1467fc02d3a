// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/thinned_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::ElementsAre;

TEST(ThinnedSeries, KeepsWhatFits) {
  ThinnedSeries series(4);
  for (int i = 0; i < 4; ++i) series.Add(10 + i, 2 * i);
  EXPECT_EQ(series.stretch(), 1);
  EXPECT_THAT(series.points(),
              ElementsAre(SeriesPoint{10, 0, 0, 0, 1}, SeriesPoint{11, 2, 2, 2, 1},
                          SeriesPoint{12, 4, 4, 4, 1}, SeriesPoint{13, 6, 6, 6, 1}));
}

TEST(ThinnedSeries, JoinsNeighboursWhenItIsFull) {
  ThinnedSeries series(4);
  for (int i = 0; i < 7; ++i) series.Add(i, i);
  EXPECT_EQ(series.stretch(), 2);
  EXPECT_EQ(series.count(), 7);
  EXPECT_THAT(series.points(),
              ElementsAre(SeriesPoint{0.5, 0.5, 0, 1, 2}, SeriesPoint{2.5, 2.5, 2, 3, 2},
                          SeriesPoint{4.5, 4.5, 4, 5, 2}, SeriesPoint{6, 6, 6, 6, 1}));
}

TEST(ThinnedSeries, StaysShortAndKeepsMeanAndExtremes) {
  ThinnedSeries series(8);
  for (int i = 0; i < 100'003; ++i) series.Add(i, i % 1000 == 999 ? 5 : 1);
  EXPECT_LE(series.points().size(), 8U);
  const SeriesPoint all = Thinned(series.points(), 1).front();
  EXPECT_EQ(all.count, 100'003);
  EXPECT_NEAR(all.mean, 1 + 4 * 100.0 / 100'003, 1e-12);
  EXPECT_NEAR(all.x, 50'001, 1e-6);
  EXPECT_EQ(all.min, 1);
  EXPECT_EQ(all.max, 5);
}

TEST(ThinnedSeries, RefusesAnOddCapacity) {
  EXPECT_THROW(ThinnedSeries(3), trainer::Error);
  EXPECT_THROW(ThinnedSeries(0), trainer::Error);
}

TEST(Thinned, TakesEquallyManyTogether) {
  const std::vector<SeriesPoint> points = {{0, 1, 1, 1, 1}, {1, 3, 3, 3, 1}, {2, 8, 8, 8, 1}};
  EXPECT_EQ(Thinned(points, 3), points);
  EXPECT_THAT(Thinned(points, 2),
              ElementsAre(SeriesPoint{0.5, 2, 1, 3, 2}, SeriesPoint{2, 8, 8, 8, 1}));
  EXPECT_THAT(Thinned({}, 2), ElementsAre());
}

TEST(BatchMeans, AreTheObservationsOfAShortRow) {
  ThinnedSeries series;
  for (int i = 0; i < 39; ++i) series.Add(i, i);
  EXPECT_EQ(BatchMeans(series).size(), 39U);
  EXPECT_EQ(BatchMeans(series).back(), 38);
  EXPECT_TRUE(BatchMeans(ThinnedSeries()).empty());
}

TEST(BatchMeans, AreTwentyOfALongOneAndLeaveOutTheRest) {
  ThinnedSeries series;
  for (int i = 0; i < 65; ++i) series.Add(i, i);
  const std::vector<double> means = BatchMeans(series);
  ASSERT_EQ(means.size(), kBatches);
  EXPECT_EQ(means[0], 1);    // of 0, 1, 2
  EXPECT_EQ(means[19], 58);  // of 57, 58, 59
}

TEST(BatchMeans, LeaveOutAStretchThatIsNotFull) {
  ThinnedSeries series(64);
  for (int i = 0; i < 161; ++i) series.Add(i, 2);
  series.Add(161, 1000);
  EXPECT_EQ(series.stretch(), 4);
  EXPECT_EQ(BatchMeans(series), std::vector<double>(kBatches, 2));
}

TEST(QuantileSample, InterpolatesAsNumpyDoes) {
  QuantileSample sample;
  for (const double value : {4.0, 1.0, 3.0, 2.0}) sample.Add(value);
  EXPECT_THAT(sample.Quantiles({0, 0.5, 0.95, 1}),
              ElementsAre(1, 2.5, ::testing::DoubleEq(3.85), 4));
  EXPECT_EQ(sample.stride(), 1);
}

TEST(QuantileSample, KeepsEverySecondOfTooMany) {
  QuantileSample sample(4);
  for (int i = 0; i < 9; ++i) sample.Add(i);
  // 0 2 4 6, then 0 4 and 8
  EXPECT_EQ(sample.stride(), 4);
  EXPECT_THAT(sample.Quantiles({0, 0.5, 1}), ElementsAre(0, 4, 8));
}

TEST(QuantileSample, NeedsAnObservation) {
  EXPECT_THROW(QuantileSample().Quantiles({0.5}), trainer::Error);
}

}  // namespace
}  // namespace bench
