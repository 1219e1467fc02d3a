// SPDX-License-Identifier: Apache-2.0

#include "bench/base/statistics.h"

#include "tests/support/test.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

// From the tables of Student's t: t of 97.5 % by degrees of freedom.
TEST(StudentQuantile, IsThatOfTheTables) {
  const std::vector<std::pair<double, double>> table = {
      {1, 12.7062}, {2, 4.30265},  {3, 3.18245},  {4, 2.77645},   {5, 2.57058},
      {9, 2.26216}, {19, 2.09302}, {30, 2.04227}, {100, 1.98397}, {1e6, 1.95997}};
  for (const auto& [degrees, t] : table) {
    EXPECT_NEAR(StudentQuantile(0.975, degrees), t, 1e-5 * t) << degrees;
  }
  EXPECT_NEAR(StudentQuantile(0.95, 10), 1.81246, 1e-5);
  EXPECT_NEAR(StudentQuantile(0.5, 7), 0, 1e-12);
}

// With one degree of freedom it is Cauchy's distribution, with two it has a closed form.
TEST(StudentProbability, HasItsClosedForms) {
  for (const double t : {-30.0, -1.0, -0.25, 0.0, 0.5, 2.0, 100.0}) {
    EXPECT_NEAR(StudentProbability(t, 1), 0.5 + std::atan(t) / std::acos(-1.0), 1e-12) << t;
    EXPECT_NEAR(StudentProbability(t, 2), 0.5 + t / (2 * std::sqrt(2 + t * t)), 1e-12) << t;
  }
}

TEST(StudentQuantile, UndoesTheProbability) {
  for (const double degrees : {1.0, 1.5, 3.7, 12.25, 250.5}) {
    for (const double probability : {0.6, 0.9, 0.975, 0.999}) {
      EXPECT_NEAR(StudentProbability(StudentQuantile(probability, degrees), degrees), probability,
                  1e-12);
    }
  }
}

TEST(MeanMargin, IsHalfOfTheInterval) {
  // sd = 1.58114 of 5: 2.77645 * 1.58114 / sqrt(5)
  const std::vector<double> values = {1, 2, 3, 4, 5};
  EXPECT_NEAR(*MeanMargin(values), 1.96324, 1e-5);
  EXPECT_EQ(MeanMargin(std::vector<double>{1}), std::nullopt);
  EXPECT_EQ(MeanMargin({}), std::nullopt);
}

// The example of R's documentation, t.test(extra ~ group, data = sleep): 95 % confidence interval
// of the difference -3.3654832 to 0.2054832, df = 17.776.
TEST(DifferenceMargin, IsWelchs) {
  const std::vector<double> a = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
  const std::vector<double> b = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  EXPECT_NEAR(*DifferenceMargin(a, b), (3.3654832 + 0.2054832) / 2, 1e-6);
  EXPECT_NEAR(*DifferenceMargin(b, a), (3.3654832 + 0.2054832) / 2, 1e-6);
}

TEST(DifferenceMargin, NeedsTwoOfEach) {
  const std::vector<double> two = {1, 2};
  EXPECT_EQ(DifferenceMargin(two, std::vector<double>{1}), std::nullopt);
  EXPECT_EQ(DifferenceMargin({}, two), std::nullopt);
  EXPECT_EQ(DifferenceMargin(std::vector<double>{1, 1}, std::vector<double>{3, 3}), 0);
}

TEST(StudentProbability, RejectsWhatIsNone) {
  EXPECT_THROW(StudentProbability(1, 0), trainer::Error);
  EXPECT_THROW(StudentQuantile(1, 5), trainer::Error);
  EXPECT_THROW(StudentQuantile(0.975, 0.5), trainer::Error);
}

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

TEST(QuantileOf, RejectsWhatIsNoProbability) {
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
