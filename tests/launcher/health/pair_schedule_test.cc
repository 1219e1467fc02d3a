// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/pair_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace launcher {
namespace {

TEST(PairSchedule, EveryPairMeetsOnceAndNobodyHasTwoPartners) {
  for (int nodes = 2; nodes <= kMostNodesOfAllPairs; ++nodes) {
    const int rounds = nodes % 2 == 0 ? nodes - 1 : nodes;
    std::set<std::pair<int, int>> met;
    for (int node = 0; node < nodes; ++node) {
      const std::vector<int> partners = PartnersByRound(node, nodes);
      ASSERT_EQ(partners.size(), static_cast<std::size_t>(rounds));
      for (std::size_t round = 0; round < partners.size(); ++round) {
        const int partner = partners[round];
        if (partner < 0) continue;
        ASSERT_NE(partner, node);
        ASSERT_LT(partner, nodes);
        EXPECT_EQ(PartnersByRound(partner, nodes)[round], node);
        if (node < partner) {
          EXPECT_TRUE(met.emplace(node, partner).second);
        }
      }
    }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(nodes * (nodes - 1) / 2)) << nodes;
  }
}

// Of more nodes each has a few partners, one at a time.
TEST(PairSchedule, ManyNodesMeetASampleOfPairs) {
  for (const int nodes : {65, 66, 100, 127, 128, 129, 1000, 1023, 4095, 4096, 4097}) {
    const int rounds = RoundsOf(nodes);
    EXPECT_LE(rounds, 1 + std::ceil(std::log2(nodes))) << nodes;
    for (int node = 0; node < nodes; ++node) {
      const std::vector<int> partners = PartnersByRound(node, nodes);
      ASSERT_EQ(static_cast<int>(partners.size()), rounds);
      std::set<int> others;
      for (std::size_t round = 0; round < partners.size(); ++round) {
        if (partners[round] < 0) continue;
        ASSERT_NE(partners[round], node);
        ASSERT_LT(partners[round], nodes);
        ASSERT_EQ(PartnersByRound(partners[round], nodes)[round], node);
        ASSERT_TRUE(others.insert(partners[round]).second);
      }
      ASSERT_GE(static_cast<int>(others.size()), rounds - 1) << nodes;
    }
  }
}

// Whichever node a walk from partner to partner starts at, it comes to all others, and soon.
TEST(PairSchedule, ASampleHoldsAllNodesTogether) {
  for (const int nodes : {65, 66, 1000, 4095, 4096}) {
    std::vector<int> steps(static_cast<std::size_t>(nodes), -1);
    std::vector<int> known = {nodes / 3};
    steps[static_cast<std::size_t>(known[0])] = 0;
    for (std::size_t i = 0; i < known.size(); ++i) {
      for (const int partner : PartnersByRound(known[i], nodes)) {
        if (partner < 0 || steps[static_cast<std::size_t>(partner)] >= 0) continue;
        steps[static_cast<std::size_t>(partner)] = steps[static_cast<std::size_t>(known[i])] + 1;
        known.push_back(partner);
      }
    }
    EXPECT_EQ(static_cast<int>(known.size()), nodes);
    EXPECT_LE(*std::max_element(steps.begin(), steps.end()), RoundsOf(nodes)) << nodes;
  }
}

TEST(PairSchedule, SaysHowLongItMayTake) {
  const std::chrono::milliseconds limit(5000);
  EXPECT_EQ(RoundsOf(64), 63);
  EXPECT_EQ(LongestTest(64, limit).count(), 11300);
  EXPECT_EQ(RoundsOf(4096), 13);
  EXPECT_EQ(LongestTest(4096, limit).count(), 6300);
}

TEST(PairSchedule, OneNodeHasNobodyToMeet) { EXPECT_TRUE(PartnersByRound(0, 1).empty()); }

}  // namespace
}  // namespace launcher
