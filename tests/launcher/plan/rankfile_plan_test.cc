// SPDX-License-Identifier: Apache-2.0

#include "launcher/plan/rankfile_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/base/error.h"

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

Allocation Job() {
  Allocation job;
  job.origin_text = "SLURM_JOB_NODELIST=n[1-2]";
  job.nodes.resize(2);
  job.nodes[0].host = "n1";
  job.nodes[1].host = "n2";
  return job;
}

TEST(RankfilePlan, CallsHostsAsSlurmDoes) {
  EXPECT_EQ(WithHostsOfJob("rank 0=n2.cluster slot=0:0-1\nrank 1=n1 slot=0:0\n", "rf", Job()),
            "rank 0=n2     slot=0:0-1\nrank 1=n1     slot=0:0\n");
  EXPECT_EQ(WithHostsOfJob("rank 0=n2 slot=0:0-1\n", "rf", Job()), "");
}

TEST(RankfilePlan, RefusesAHostOutsideTheJob) {
  try {
    WithHostsOfJob("rank 0=n9.cluster slot=0\n", "my.rankfile", Job());
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_CONFIG);
    EXPECT_THAT(error.what(), testing::HasSubstr("my.rankfile names n9.cluster"));
    EXPECT_THAT(error.what(), testing::HasSubstr("#SBATCH --nodelist=n9"));
  }
}

}  // namespace
}  // namespace launcher
