// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/health_check.h"

#include <gtest/gtest.h>

#include "tests/launcher/protocol/made_up_plans.h"

namespace launcher {
namespace {

TEST(CheckAnnouncement, SaysHowManyPartnersANodeHasAndHowLongItMayTake) {
  EXPECT_EQ(CheckAnnouncement(EvenPlan(1, 4)), "");
  EXPECT_EQ(CheckAnnouncement(EvenPlan(64, 4)),
            "ddlrun: checking 64 nodes, each against all others: at most 11.3 s once they have "
            "met, 60 s in any case\n");
  EXPECT_EQ(CheckAnnouncement(EvenPlan(4096, 1)),
            "ddlrun: checking 4096 nodes, each against 13 others: at most 6.3 s once they have "
            "met, 100 s in any case\n");
}

TEST(OneRankPerNode, KeepsNodesAndTheirGpus) {
  const Plan checks = OneRankPerNode(EvenPlan(3, 8));
  ASSERT_EQ(checks.nodes.size(), 3U);
  ASSERT_EQ(checks.ranks.size(), 3U);
  EXPECT_EQ(checks.nodes[2].host, "n3");
  EXPECT_EQ(checks.nodes[2].gpus, 8);
  EXPECT_EQ(checks.nodes[2].ranks, std::vector<int>{2});
  EXPECT_EQ(checks.ranks[2].node, 2);
}

}  // namespace
}  // namespace launcher
