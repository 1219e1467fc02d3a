// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/gpu_affinity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/launcher/plan/plan_fixtures.h"

namespace launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(GpuAffinity, SplitsTheCoresNearTheGpu) {
  const NodeTopology node = MakeNode({4, 4}, 1, {0, 0, 1, 1});
  EXPECT_THAT(SplitCores(node, {0, 1, 2, 3}, 0), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3),
                                                             ElementsAre(4, 5), ElementsAre(6, 7)));
  EXPECT_THAT(SplitCores(node, {2, 0}, 0),
              ElementsAre(ElementsAre(4, 5, 6, 7), ElementsAre(0, 1, 2, 3)));
}

TEST(GpuAffinity, GivesTheFirstRanksTheOddCores) {
  const NodeTopology node = MakeNode({5, 4}, 1, {0, 0, 0, 1});
  EXPECT_THAT(
      SplitCores(node, {0, 1, 2, 3}, 0),
      ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4), ElementsAre(5, 6, 7, 8)));
}

TEST(GpuAffinity, GivesExactlyTheCoresAskedFor) {
  const NodeTopology node = MakeNode({4, 4}, 1, {0, 0, 1, 1});
  EXPECT_THAT(SplitCores(node, {0, 1, 2, 3}, 1),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(4), ElementsAre(5)));
}

TEST(GpuAffinity, LeavesTheNumaNodeOfTheGpuWhenItIsTooSmall) {
  // Slurm gave cores of socket 0 only, or mostly.
  EXPECT_THAT(SplitCores(MakeNode({4}, 1, {0, 0, -1, -1}), {0, 1, 2, 3}, 0),
              ElementsAre(ElementsAre(2), ElementsAre(3), ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(SplitCores(MakeNode({6, 1}, 1, {0, 1, 1}), {0, 1, 2}, 0),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5)));
}

TEST(GpuAffinity, KeepsRanksWithoutGpusInsideANumaNode) {
  EXPECT_THAT(SplitCores(MakeNode({2, 2}, 1, {}), {-1, -1}, 0),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(SplitCores(MakeNode({3, 5}, 1, {}), {-1, -1, -1}, 0),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5), ElementsAre(6, 7)));
}

TEST(GpuAffinity, SplitsAcrossNumaNodesWhereSharesDoNotFitInside) {
  EXPECT_THAT(SplitCores(MakeNode({2, 2}, 1, {}), {-1}, 0), ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(SplitCores(MakeNode({3, 3}, 1, {}), {-1, -1, -1}, 0),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5)));
}

TEST(GpuAffinity, DealsRanksOutByTheCoresThatTheyWouldHave) {
  EXPECT_THAT(SplitCores(MakeNode({4, 8}, 1, {}), {-1, -1, -1}, 1),
              ElementsAre(ElementsAre(0), ElementsAre(4), ElementsAre(5)));
  // An even share of the cores, which is two for a rank, would not fit inside.
  EXPECT_THAT(SplitCores(MakeNode({3, 3}, 1, {}), {-1, -1, -1}, 1),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(3)));
}

TEST(GpuAffinity, GivesNoneWhereThereAreTooFew) {
  const NodeTopology laptop = MakeNode({2}, 1, {});
  EXPECT_THAT(SplitCores(laptop, {-1, -1, -1}, 0), ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
  EXPECT_THAT(SplitCores(laptop, {-1, -1}, 2), ElementsAre(IsEmpty(), IsEmpty()));
  EXPECT_THAT(SplitCores(laptop, {}, 0), IsEmpty());
}

}  // namespace
}  // namespace launcher
