// SPDX-License-Identifier: Apache-2.0
#include "launcher/placement/plan_check.h"

#include <gtest/gtest.h>

#include "launcher/placement/planner.h"
#include "tests/launcher/placement/plan_fixtures.h"

namespace launcher {
namespace {

LaunchPlan GoodPlan() {
  return MakePlan(MakeAllocation(2, 2, -1), {MakeNode({2, 2}, 2, {0, 1})}, {});
}

TEST(PlanCheck, FindsEveryBrokenInvariant) {
  EXPECT_EQ(FindPlanError(GoodPlan(), false), "");
  LaunchPlan plan = GoodPlan();
  plan.ranks[1].gpu = 0;
  EXPECT_EQ(FindPlanError(plan, false), "node n1: GPU 0 is shared");
  EXPECT_EQ(FindPlanError(plan, true), "");
  plan = GoodPlan();
  plan.ranks[1].cores[0] = 1;
  EXPECT_EQ(FindPlanError(plan, false), "node n1: core 1 is shared");
  plan = GoodPlan();
  plan.ranks[1].cpus[0] = 3;
  EXPECT_EQ(FindPlanError(plan, false), "node n1: CPU 3 is shared");
  plan = GoodPlan();
  plan.ranks[1].local_rank = 0;
  EXPECT_EQ(FindPlanError(plan, false), "node n1: rank 1 has the wrong local rank");
  plan = GoodPlan();
  plan.ranks[2].node = 0;
  EXPECT_EQ(FindPlanError(plan, false), "node n2: rank 2 says it is on another node");
  plan = GoodPlan();
  plan.ranks[2].rank = 3;
  EXPECT_EQ(FindPlanError(plan, false), "ranks are not numbered from 0");
  plan = GoodPlan();
  plan.nodes[1].host = "n1";
  EXPECT_EQ(FindPlanError(plan, false), "node n1: is there twice");
  plan = GoodPlan();
  plan.nodes[0].ranks = {1, 0};
  EXPECT_EQ(FindPlanError(plan, false), "node n1: rank 1 has the wrong local rank");
  plan = GoodPlan();
  plan.nodes[0].ranks = {0, 0};
  EXPECT_EQ(FindPlanError(plan, false), "node n1: rank 0 is out of order");
  plan = GoodPlan();
  plan.nodes[1].ranks = {2};
  EXPECT_EQ(FindPlanError(plan, false), "a rank is on no node");
  plan = GoodPlan();
  plan.nodes[1].ranks = {2, 4};
  EXPECT_EQ(FindPlanError(plan, false), "node n2: rank 4 does not exist");
  plan = GoodPlan();
  plan.nodes[1].ranks.clear();
  EXPECT_EQ(FindPlanError(plan, false), "node n2: has no rank");
  plan = GoodPlan();
  plan.ranks[0].cpus.clear();
  EXPECT_EQ(FindPlanError(plan, false), "node n1: rank 0 has cores without CPUs");
  plan = GoodPlan();
  plan.racks = 3;
  EXPECT_EQ(FindPlanError(plan, false), "racks do not hold equal numbers of nodes");
}

}  // namespace
}  // namespace launcher
