// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/pair_schedule.h"

#include <gtest/gtest.h>

#include <set>

namespace launcher {
namespace {

TEST(PairSchedule, EveryPairMeetsOnceAndNobodyHasTwoPartners) {
  for (int nodes = 2; nodes <= 33; ++nodes) {
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

TEST(PairSchedule, OneNodeHasNobodyToMeet) { EXPECT_TRUE(PartnersByRound(0, 1).empty()); }

}  // namespace
}  // namespace launcher
