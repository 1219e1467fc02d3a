// SPDX-License-Identifier: Apache-2.0

#include "scaling/step.h"

#include <gtest/gtest.h>

namespace scaling {
namespace {

// 10 GB/s between nodes of one GPU, so that hops take next to nothing of these sizes.
Links Plain() { return {.gpus_per_node = 1, .inside = 10e9, .between = 10e9}; }

// 0.3 s, of which 0.2 backward; two buckets that take 0.1 s each on two ranks.
StepWork TwoBuckets() { return {.alone = 0.3, .buckets = {{1e9, 0.5}, {1e9, 1}}}; }

TEST(ExpectedLargest, IsThatOfNormalDraws) {
  EXPECT_EQ(ExpectedLargest(1), 0);
  EXPECT_NEAR(ExpectedLargest(2), 0.5642, 1e-4);  // 1 / sqrt(pi)
  EXPECT_NEAR(ExpectedLargest(3), 0.8463, 1e-4);  // 1.5 / sqrt(pi)
  EXPECT_NEAR(ExpectedLargest(10), 1.5388, 1e-4);
  EXPECT_NEAR(ExpectedLargest(1000), 3.2414, 1e-4);
}

TEST(PartsOfStep, OfOneRankAreItsComputation) {
  const StepParts parts = PartsOfStep(TwoBuckets(), Plain(), 1);
  EXPECT_EQ(parts.total(), 0.3);
  EXPECT_EQ(parts.sums, 0);
}

TEST(PartsOfStep, HideSumsBehindBackward) {
  // The first runs from 0.1 to 0.2 s of backward, the second behind it.
  const StepParts parts = PartsOfStep(TwoBuckets(), Plain(), 2);
  EXPECT_NEAR(parts.sums, 0.2, 1e-3);
  EXPECT_NEAR(parts.exposed, 0.1, 1e-3);
  EXPECT_NEAR(parts.total(), 0.4, 1e-3);
}

TEST(PartsOfStep, QueueSumsThatBackwardCannotHide) {
  Links slow = Plain();
  slow.between = 2e9;  // 0.5 s each, from 0.1 s on
  EXPECT_NEAR(PartsOfStep(TwoBuckets(), slow, 2).exposed, 0.9, 1e-2);
}

TEST(PartsOfStep, WithoutOverlapAddAllSums) {
  StepWork work = TwoBuckets();
  work.overlaps = false;
  EXPECT_NEAR(PartsOfStep(work, Plain(), 2).exposed, 0.2, 1e-3);
}

TEST(PartsOfStep, StartSumsWithACycle) {
  StepWork work = TwoBuckets();
  work.cycle = 0.06;
  // The second waits until 0.24.
  EXPECT_NEAR(PartsOfStep(work, Plain(), 2).exposed, 0.14, 1e-3);
}

TEST(PartsOfStep, AddTheWayToHostMemoryAndBack) {
  StepWork work = TwoBuckets();
  work.staging_rate = 20e9;
  EXPECT_NEAR(PartsOfStep(work, Plain(), 2).exposed, 0.1 + 0.2, 1e-3);
}

TEST(PartsOfStep, WaitForTheSlowestRank) {
  StepWork work = TwoBuckets();
  work.spread = 0.01;
  EXPECT_NEAR(PartsOfStep(work, Plain(), 2).slowest, 0.005642, 1e-6);
  EXPECT_NEAR(PartsOfStep(work, Plain(), 1000).slowest, 0.032414, 1e-6);
}

TEST(PartsOfStep, WaitBetweenNodesOnly) {
  Links links = Plain();
  links.gpus_per_node = 4;
  StepWork work = TwoBuckets();
  work.wait_between = 0.02;
  EXPECT_EQ(PartsOfStep(work, links, 4).wait, 0);
  EXPECT_EQ(PartsOfStep(work, links, 8).wait, 0.02);
}

}  // namespace
}  // namespace scaling
