// SPDX-License-Identifier: Apache-2.0

#include "launcher/rankfile_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/error.h"

namespace launcher {
namespace {

TEST(RankfilePlan, PutsEachRankOnItsHostInRankOrder) {
  const Plan plan =
      PlanFromRankfile("rank 0=n1 slot=0:0-3\nrank 1=n2 slot=0:0-3\nrank 2=n1 slot=1:0-3\n", "rf");
  ASSERT_EQ(plan.ranks.size(), 3U);
  EXPECT_EQ(plan.ranks[2].node, 0);
  EXPECT_EQ(plan.ranks[2].local_rank, 1);
  EXPECT_EQ(plan.nodes[1].host, "n2");
  EXPECT_THAT(plan.nodes[0].ranks, testing::ElementsAre(0, 2));
  EXPECT_TRUE(plan.ranks[0].cpus.empty());  // mpirun binds by the file
}

TEST(RankfilePlan, RefusesABadOrEmptyFileByName) {
  for (const char* text : {"rank 0=n1 slot=x\n", "", "rank 1=n1 slot=0\n"}) {
    try {
      PlanFromRankfile(text, "my.rankfile");
      FAIL() << text;
    } catch (const LaunchError& error) {
      EXPECT_EQ(error.exit_code(), EX_DATAERR);
      EXPECT_THAT(error.what(), testing::HasSubstr("my.rankfile"));
    }
  }
}

}  // namespace
}  // namespace launcher
