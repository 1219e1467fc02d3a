// SPDX-License-Identifier: Apache-2.0

#include "launcher/tune/slow_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::vector<std::string> kHosts = {"n1", "n2", "n3", "n4"};

std::vector<PairTime> Pairs(double of_others) {
  std::vector<PairTime> pairs;
  for (const auto& [one, other] : PairsToMeasure(4)) {
    pairs.push_back({one, other, {of_others, of_others + 1, of_others - 1}});
  }
  return pairs;
}

TEST(Pairs, AreAllOfFewNodesAndARingOfMany) {
  EXPECT_THAT(PairsToMeasure(1), IsEmpty());
  EXPECT_EQ(PairsToMeasure(2).size(), 1U);
  EXPECT_EQ(PairsToMeasure(5).size(), 10U);
  const auto ring = PairsToMeasure(6);
  ASSERT_EQ(ring.size(), 6U);
  EXPECT_EQ(ring[5], std::pair(5, 0));
}

TEST(SlowLinks, AreNoneWhereAllPairsAreAlike) {
  EXPECT_THAT(SlowLinks("eth0", kHosts, Pairs(100)), IsEmpty());
  EXPECT_THAT(SlowLinks("eth0", kHosts, {}), IsEmpty());
}

TEST(SlowLinks, OfOneNodeNameTheNode) {
  std::vector<PairTime> pairs = Pairs(100);
  for (PairTime& pair : pairs) {
    if (pair.one == 2 || pair.other == 2) pair.microseconds = {900, 910, 905};
  }
  EXPECT_THAT(SlowLinks("eth1", kHosts, pairs),
              ElementsAre("n3 is slow on eth1: with n1 905 us (scatter 10.0 us), with n2 905 us "
                          "(scatter 10.0 us), with n4 905 us (scatter 10.0 us), the fastest pair "
                          "100 us (scatter 2.00 us)"));
}

TEST(SlowLinks, OfOnePairNameThePair) {
  std::vector<PairTime> pairs = Pairs(100);
  pairs[0].microseconds = {};
  pairs[5].microseconds = {300, 300, 300};
  EXPECT_THAT(SlowLinks("eth1", kHosts, pairs),
              ElementsAre(StartsWith("n1 and n2 are slow on eth1: failed"),
                          StartsWith("n3 and n4 are slow on eth1: 300 us")));
}

TEST(SlowLinks, WithinTheScatterAreNone) {
  std::vector<PairTime> pairs = Pairs(100);
  pairs[0].microseconds = {90, 200, 400};
  EXPECT_THAT(SlowLinks("eth1", kHosts, pairs), IsEmpty());
  pairs[0].microseconds = {149, 150, 148};
  EXPECT_THAT(SlowLinks("eth1", kHosts, pairs), IsEmpty());
}

}  // namespace
}  // namespace launcher
