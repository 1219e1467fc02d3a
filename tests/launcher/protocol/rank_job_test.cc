// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/rank_job.h"

#include "launcher/base/error.h"
#include "tests/launcher/protocol/fake_plans.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

RankJob Example(const LaunchPlan& plan) {
  RankJob job;
  job.launcher = "mpirun";
  job.event_key = "0123456789abcdef";
  job.run_directory = "/tmp/a \"b\":%\n\xc3\xa4";
  job.log_directory = "/home/x/logs";
  job.directory = "/home/x/a b";
  job.planned_for = "online=0-3";
  job.master_address = "n1";
  job.master_port = 61234;
  job.restart_count = 3;
  job.grace_ms = 4500;
  job.plan = plan;
  return job;
}

// No two nodes and no two ranks in a row have anything to do with each other.
LaunchPlan PlanWithoutOrder(int nodes, int ranks_per_node) {
  std::vector<int> order;
  for (int rank = 0; rank < nodes * ranks_per_node; ++rank) order.push_back(rank * 7 % nodes);
  LaunchPlan plan = PlanOf(order);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    plan.nodes[i].host = "g" + std::to_string(i * 7919 % 10007) + "-ib0";
  }
  return plan;
}

TEST(RankJob, DecodesWhatWasEncoded) {
  const RankJob job = DecodeRankJob(EncodeRankJob(Example(EvenPlan(2, 2))));
  EXPECT_EQ(job.launcher, "mpirun");
  EXPECT_EQ(job.event_key, "0123456789abcdef");
  EXPECT_TRUE(job.bind);
  EXPECT_EQ(job.run_directory, "/tmp/a \"b\":%\n\xc3\xa4");
  EXPECT_EQ(job.log_directory, "/home/x/logs");
  EXPECT_EQ(job.directory, "/home/x/a b");
  EXPECT_EQ(job.planned_for, "online=0-3");
  EXPECT_EQ(job.master_address, "n1");
  EXPECT_EQ(job.master_port, 61234);
  EXPECT_EQ(job.restart_count, 3);
  EXPECT_EQ(job.grace_ms, 4500);
  ASSERT_EQ(job.plan.ranks.size(), 4U);
  EXPECT_EQ(job.plan.ranks[3].node, 1);
  EXPECT_EQ(job.plan.ranks[3].gpu, 1);
  EXPECT_EQ(job.plan.ranks[3].cores.size(), 2U);
  EXPECT_THAT(job.plan.ranks[3].cpus, ElementsAre(2, 3, 42, 43));
  EXPECT_THAT(job.plan.nodes[1].ranks, ElementsAre(2, 3));
}

TEST(RankJob, SaysWhatTheShimLeavesOut) {
  RankJob job = Example(EvenPlan(1, 1));
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

TEST(RankJob, OfFourThousandEqualNodesIsOneShortVariable) {
  const std::string text = EncodeRankJob(Example(EvenPlan(4096, 8)));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_LT(text.size(), 1000U);
  EXPECT_THAT(RankJobVariables(text), ElementsAre(Pair(kRankJobVariable, text)));
}

TEST(RankJob, OfFourThousandNodesWithoutAnyOrderFitsIntoAFewVariables) {
  const LaunchPlan plan = PlanWithoutOrder(4096, 8);
  const std::string text = EncodeRankJob(Example(plan));
  const std::map<std::string, std::string> variables = RankJobVariables(text);
  EXPECT_EQ(variables.size(), 3U);
  for (const auto& [name, value] : variables) {
    EXPECT_LT(name.size() + 1 + value.size() + 1, 131072U);  // MAX_ARG_STRLEN
  }
  const LaunchPlan again = DecodeRankJob(RankJobText(variables)).plan;
  ASSERT_EQ(again.ranks.size(), 32768U);
  EXPECT_EQ(again.ranks[32767].node, plan.ranks[32767].node);
  EXPECT_EQ(again.ranks[32767].local_rank, 7);
  EXPECT_EQ(again.nodes[4095].host, plan.nodes[4095].host);
}

TEST(RankJob, RejectsAPlanThatNoVariablesCanHold) {
  EXPECT_THROW(EncodeRankJob(Example(PlanWithoutOrder(16384, 8))), LaunchError);
}

TEST(RankJob, WithoutOneOfItsVariablesIsNone) {
  std::map<std::string, std::string> variables =
      RankJobVariables(EncodeRankJob(Example(PlanWithoutOrder(4096, 8))));
  variables.erase("DDLRUN_RANK_JOB_2");
  EXPECT_THROW(DecodeRankJob(RankJobText(variables)), LaunchError);
  EXPECT_EQ(RankJobText({{"HOME", "/"}}), "");
}

TEST(RankJob, RejectsATextItDidNotWrite) {
  const std::string good = EncodeRankJob(Example(EvenPlan(1, 1)));
  std::string escape = good;
  escape.replace(escape.find("%25"), 3, "%2x");
  for (const std::string& text : {std::string(), std::string("{}"), good.substr(0, good.size() / 2),
                                  good.substr(0, good.rfind(':')), good + " 0", escape}) {
    EXPECT_THROW(DecodeRankJob(text), LaunchError) << text;
  }
}

}  // namespace
}  // namespace launcher
