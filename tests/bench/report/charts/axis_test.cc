// SPDX-License-Identifier: Apache-2.0

#include "bench/report/charts/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> TextsOf(const Axis& axis) {
  std::vector<std::string> texts;
  for (const double tick : axis.Ticks()) texts.push_back(TickText(axis, tick));
  return texts;
}

TEST(RoundAxis, HasRoundTicksAroundAllValues) {
  EXPECT_THAT(TextsOf(RoundAxis(0, 100, 5)), ElementsAre("0", "20", "40", "60", "80", "100"));
  EXPECT_THAT(TextsOf(RoundAxis(3, 98, 5)), ElementsAre("0", "20", "40", "60", "80", "100"));
  EXPECT_THAT(TextsOf(RoundAxis(0.11, 0.34, 5)),
              ElementsAre("0.10", "0.15", "0.20", "0.25", "0.30", "0.35"));
  EXPECT_THAT(TextsOf(RoundAxis(-3, 4, 4)), ElementsAre("-4", "-2", "0", "2", "4"));
  EXPECT_THAT(TextsOf(RoundAxis(0, 25000, 5)), ElementsAre("0", "5k", "10k", "15k", "20k", "25k"));
}

TEST(RoundAxis, OfWholeNumbersHasNoneBetween) {
  EXPECT_THAT(TextsOf(RoundAxis(1, 2, 5, /*is_whole=*/true)), ElementsAre("1", "2"));
}

TEST(RoundAxis, WidensOneValue) {
  EXPECT_THAT(TextsOf(RoundAxis(0, 0, 5)), ElementsAre("0.0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  const Axis axis = RoundAxis(50, 50, 5);
  EXPECT_LT(axis.low, 50);
  EXPECT_GT(axis.high, 50);
  // Closer than the digits of a double tell apart.
  EXPECT_LE(RoundAxis(1e15, 1e15 + 1, 5).Ticks().size(), 12U);
}

TEST(RoundAxis, PlacesInProportion) {
  const Axis axis = RoundAxis(0, 10, 5);
  EXPECT_EQ(axis.Place(0, 200), 0);
  EXPECT_EQ(axis.Place(5, 200), 100);
  EXPECT_EQ(axis.Place(10, 200), 200);
}

TEST(RoundAxis, RefusesWhatIsNoRange) {
  EXPECT_THROW(RoundAxis(1, 0, 5), trainer::Error);
  EXPECT_THROW(RoundAxis(0, 1.0 / 0.0, 5), trainer::Error);
}

}  // namespace
}  // namespace bench
