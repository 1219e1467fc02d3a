// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/statistics.h"

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

TEST(Statistics, NeedAValue) { EXPECT_THROW(StatisticsOf({}), trainer::Error); }

}  // namespace
}  // namespace bench
