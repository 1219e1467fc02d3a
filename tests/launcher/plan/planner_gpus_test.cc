// SPDX-License-Identifier: Apache-2.0
//
// GPUs that are not simply all of a node, or its first.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/base/error.h"
#include "launcher/plan/planner.h"
#include "tests/launcher/plan/plan_fixtures.h"

namespace launcher {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string Refusal(const Allocation& allocation, const PlanOptions& options) {
  try {
    MakePlan(allocation, {Ac922()}, options);
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_CONFIG);
    return error.what();
  }
  return "";
}

TEST(PlannerGpus, StartsARankForEachGpuThatIsVisible) {
  Allocation allocation = MakeAllocation(1, kUnsaid, kUnsaid);
  allocation.origin = Allocation::Origin::kThisMachine;
  allocation.nodes[0].gpus_visible = 2;
  allocation.nodes[0].gpu_indices = {3, 1};
  const Plan plan = MakePlan(allocation, {Ac922()}, {});
  ASSERT_EQ(plan.ranks.size(), 2U);
  EXPECT_EQ(plan.ranks[0].gpu, 3);
  EXPECT_EQ(plan.ranks[0].numa_os_index, 8);
  EXPECT_EQ(plan.ranks[1].gpu, 1);
  EXPECT_EQ(plan.nodes[0].gpus, 0) << "nobody granted them";
  PlanOptions options;
  options.gpus_per_node = 1;
  EXPECT_EQ(MakePlan(allocation, {Ac922()}, options).ranks[0].gpu, 3);
  options.gpus_per_node = 3;
  EXPECT_THAT(Refusal(allocation, options),
              HasSubstr("3 GPUs per node asked for, but CUDA_VISIBLE_DEVICES leaves 2"));
  Allocation two_nodes = MakeAllocation(2, kUnsaid, kUnsaid);
  two_nodes.nodes[0] = allocation.nodes[0];
  EXPECT_EQ(MakePlan(two_nodes, {Ac922()}, {}).ranks.size(), 4U) << "the other is like the first";
  allocation.nodes[0].gpus_visible = 0;
  allocation.nodes[0].gpu_indices = {};
  EXPECT_EQ(MakePlan(allocation, {Ac922()}, {}).ranks[0].gpu, -1);
}

TEST(PlannerGpus, GivesRanksSlicesOfOneGpu) {
  Allocation allocation = MakeAllocation(1, 3, kUnsaid);
  allocation.nodes[0].gpu_indices = {0, 0, -1};
  const Plan plan = MakePlan(allocation, {MakeNode({4}, 1, {0})}, {});
  ASSERT_EQ(plan.ranks.size(), 3U);
  EXPECT_EQ(plan.ranks[1].gpu, 0);
  EXPECT_EQ(plan.ranks[2].gpu, -1);
  EXPECT_THAT(plan.warnings, IsEmpty());
}

}  // namespace
}  // namespace launcher
