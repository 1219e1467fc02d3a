// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/rank_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/error.h"

namespace launcher {
namespace {

using ::testing::ElementsAre;

RankJob Example(int nodes, int ranks_per_node) {
  RankJob job;
  job.spawner = "mpirun";
  job.run_directory = "/tmp/a \"b\":%\n\xc3\xa4";
  job.log_directory = "/home/x/logs";
  job.planned_for = "online=0-3";
  job.master_address = "n1";
  job.master_port = 61234;
  job.restart_count = 3;
  for (int node = 0; node < nodes; ++node) {
    job.plan.nodes.emplace_back().host = "gpu" + std::to_string(node);
    for (int local = 0; local < ranks_per_node; ++local) {
      RankPlan rank;
      rank.rank = static_cast<int>(job.plan.ranks.size());
      rank.node = node;
      rank.local_rank = local;
      rank.gpu = local;
      rank.numa_os_index = local < 2 ? 0 : 8;
      rank.cores = {2 * local, 2 * local + 1};
      rank.cpus = {4 * local, 4 * local + 1, 4 * local + 40, 4 * local + 41, 4 * local + 42};
      job.plan.nodes.back().ranks.push_back(rank.rank);
      job.plan.ranks.push_back(rank);
    }
  }
  return job;
}

TEST(RankJob, DecodesWhatWasEncoded) {
  const RankJob job = DecodeRankJob(EncodeRankJob(Example(2, 2)));
  EXPECT_EQ(job.spawner, "mpirun");
  EXPECT_TRUE(job.bind);
  EXPECT_EQ(job.run_directory, "/tmp/a \"b\":%\n\xc3\xa4");
  EXPECT_EQ(job.log_directory, "/home/x/logs");
  EXPECT_EQ(job.planned_for, "online=0-3");
  EXPECT_EQ(job.master_address, "n1");
  EXPECT_EQ(job.master_port, 61234);
  EXPECT_EQ(job.restart_count, 3);
  ASSERT_EQ(job.plan.ranks.size(), 4U);
  EXPECT_EQ(job.plan.ranks[3].node, 1);
  EXPECT_EQ(job.plan.ranks[3].gpu, 1);
  EXPECT_EQ(job.plan.ranks[3].cores.size(), 2U);
  EXPECT_THAT(job.plan.ranks[3].cpus, ElementsAre(4, 5, 44, 45, 46));
  EXPECT_THAT(job.plan.nodes[1].ranks, ElementsAre(2, 3));
}

TEST(RankJob, SaysWhatTheShimLeavesOut) {
  RankJob job = Example(1, 1);
  EXPECT_TRUE(DecodeRankJob(EncodeRankJob(job)).check);
  job.bind = job.check = false;
  EXPECT_FALSE(DecodeRankJob(EncodeRankJob(job)).bind);
  EXPECT_FALSE(DecodeRankJob(EncodeRankJob(job)).check);
  EXPECT_FALSE(DecodeRankJob(EncodeRankJob(job)).pause);
  EXPECT_EQ(DecodeRankJob(EncodeRankJob(job)).pmi, "");
  job.pause = true;
  job.pmi = "pmi2";
  EXPECT_TRUE(DecodeRankJob(EncodeRankJob(job)).pause);
  EXPECT_FALSE(DecodeRankJob(EncodeRankJob(job)).check);
  EXPECT_EQ(DecodeRankJob(EncodeRankJob(job)).pmi, "pmi2");
}

TEST(RankJob, IsOneLineAndSmallEnoughForAThousandRanks) {
  const std::string text = EncodeRankJob(Example(250, 4));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_LT(text.size(), kMaxRankJobBytes);
}

TEST(RankJob, RefusesAPlanThatNoVariableCanHold) {
  EXPECT_THROW(EncodeRankJob(Example(2000, 4)), LaunchError);
}

TEST(RankJob, RefusesATextItDidNotWrite) {
  const std::string good = EncodeRankJob(Example(1, 1));
  std::string huge = good;
  huge.replace(huge.find(":0-1,"), 5, ":0-2000000000,");
  std::string elsewhere = good;
  elsewhere.replace(elsewhere.find(" 0:0:0:"), 7, " 7:0:0:");
  std::string escape = good;
  escape.replace(escape.find("%25"), 3, "%2x");
  for (const std::string& text : {std::string(), std::string("{}"), good.substr(0, good.size() / 2),
                                  good.substr(0, good.rfind(':')), huge, elsewhere, escape}) {
    EXPECT_THROW(DecodeRankJob(text), LaunchError) << text;
  }
}

}  // namespace
}  // namespace launcher
