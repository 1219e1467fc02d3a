// SPDX-License-Identifier: Apache-2.0

#include "launcher/plan/segments.h"

#include <gtest/gtest.h>

namespace launcher {
namespace {

// Two ranks on each of n1, n2, ..., which are in these blocks.
Plan PlanOf(const std::vector<std::string>& blocks) {
  Plan plan;
  for (const std::string& block : blocks) {
    NodePlan& node = plan.nodes.emplace_back();
    node.host = "n" + std::to_string(plan.nodes.size());
    node.network = block;
    const int first = 2 * static_cast<int>(plan.nodes.size()) - 2;
    node.ranks = {first, first + 1};
  }
  return plan;
}

TEST(Segments, AreWholeWhereTheirNodesShareABlock) {
  EXPECT_EQ(TornSegment(PlanOf({"b1", "b1", "b2", "b2"}), 2), "");
  EXPECT_EQ(TornSegment(PlanOf({"b1", "b2", "b1"}), 1), "");
  EXPECT_EQ(TornSegment(PlanOf({"b1", "b1", "b1", "b1", "b2"}), 2), "");
  EXPECT_EQ(TornSegment(PlanOf({"", "b1"}), 2), "");  // not known
  EXPECT_EQ(TornSegment(PlanOf({}), 2), "");
  EXPECT_EQ(TornSegment(PlanOf({"b1", "b2"}), 0), "");
}

TEST(Segments, AreTornOverBlocks) {
  EXPECT_EQ(TornSegment(PlanOf({"b1", "b1", "b2", "b1", "b2", "b3"}), 2),
            "the segment of ranks 4 to 7 is on several blocks: b2 (n3) and b1 (n4)");
  EXPECT_EQ(TornSegment(PlanOf({"b1", "b2", "b1", "b3"}), 4),
            "the segment of ranks 0 to 7 is on several blocks: b1 (n1, n3), b2 (n2) and b3 (n4)");
  // The last segment has what is left.
  EXPECT_EQ(TornSegment(PlanOf({"b1", "b1", "b1", "b1", "b2"}), 3),
            "the segment of ranks 6 to 9 is on several blocks: b1 (n4) and b2 (n5)");
}

}  // namespace
}  // namespace launcher
