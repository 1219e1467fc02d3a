// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/local_rank_job.h"

#include <cstdlib>
#include <random>

#include "launcher/protocol/rank_job.h"
#include "tests/launcher/protocol/fake_plans.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

RankJob Example() {
  RankJob job;
  job.launcher = "srun";
  job.pmi = "none";
  job.event_key = "0123456789abcdef";
  job.pause = true;
  job.check = false;
  job.planned_for = "allowed=f online=0-3";
  job.run_directory = "/tmp/a \"b\":%\n\xc3\xa4";
  job.directory = "/home/x/-a b";
  job.master_address = "n1";
  job.master_port = 61234;
  job.restart_count = 3;
  job.grace_ms = 4500;
  job.plan.cpus_per_rank = 2;
  job.plan.cpus_are_cores = true;
  for (int i = 0; i < 5; ++i) {  // 0 1 | 2 3 4
    if (i == 0 || i == 2) job.plan.nodes.emplace_back().host = "gpu-" + std::to_string(i);
    job.plan.nodes.back().gpus = i;
    RankPlacement rank;
    rank.rank = i;
    rank.node = static_cast<int>(job.plan.nodes.size()) - 1;
    rank.local_rank = i < 2 ? i : i - 2;
    rank.gpu = i;
    rank.numa_os_index = i == 4 ? 8 : -1;
    if (i == 4) rank.cores = {0, 1};
    if (i == 4) rank.cpus = {0, 1, 2, 8};
    job.plan.nodes.back().ranks.push_back(i);
    job.plan.ranks.push_back(rank);
  }
  return job;
}

TEST(LocalRankJob, IsWhatDdlrunWroteForThisRank) {
  const std::string text = EncodeRankJob(Example());
  const auto own = std::make_unique<LocalRankJob>();
  ASSERT_TRUE(ReadLocalRankJob(text.c_str(), 4, "", own.get()));
  EXPECT_STREQ(own->launcher, "srun");
  EXPECT_STREQ(own->pmi, "none");
  EXPECT_STREQ(own->event_key, "0123456789abcdef");
  EXPECT_TRUE(own->pause);
  EXPECT_TRUE(own->bind);
  EXPECT_FALSE(own->check);
  EXPECT_STREQ(own->planned_for, "allowed=f online=0-3");
  EXPECT_STREQ(own->run_directory, "/tmp/a \"b\":%\n\xc3\xa4");
  EXPECT_STREQ(own->log_directory, "");
  EXPECT_STREQ(own->directory, "/home/x/-a b");
  EXPECT_STREQ(own->master_address, "n1");
  EXPECT_EQ(own->master_port, 61234);
  EXPECT_EQ(own->restart_count, 3);
  EXPECT_EQ(own->grace_ms, 4500);
  EXPECT_EQ(own->cpus_per_rank, 2);
  EXPECT_EQ(own->world_size, 5);
  EXPECT_EQ(own->node_count, 2);
  EXPECT_EQ(own->rank, 4);
  EXPECT_EQ(own->node, 1);
  EXPECT_EQ(own->local_rank, 2);
  EXPECT_EQ(own->local_world_size, 3);
  EXPECT_STREQ(own->host, "gpu-2");
  EXPECT_EQ(own->gpus, 4);
  EXPECT_EQ(own->numa_os_index, 8);
  EXPECT_EQ(own->cores, 2);
  EXPECT_TRUE(std::string(own->cpus).starts_with("0-2,8 "));
}

TEST(LocalRankJob, OfTheFirstRankIsFoundToo) {
  const std::string text = EncodeRankJob(Example());
  const auto own = std::make_unique<LocalRankJob>();
  ASSERT_TRUE(ReadLocalRankJob(text.c_str(), 0, "", own.get()));
  EXPECT_STREQ(own->host, "gpu-0");
  EXPECT_EQ(own->local_world_size, 2);
  EXPECT_EQ(std::string(own->cpus).substr(0, 2), "- ");
}

// Every rank of `plan` reads of itself what the plan has; `step`: every so many.
void ExpectOwnJobs(const LaunchPlan& plan, std::size_t step = 1) {
  RankJob job = Example();
  job.plan = plan;
  const std::string text = EncodeRankJob(job);
  const auto own = std::make_unique<LocalRankJob>();
  for (std::size_t r = 0; r < plan.ranks.size(); r += step) {
    ASSERT_TRUE(ReadLocalRankJob(text.c_str(), static_cast<int>(r), "", own.get())) << r;
    const RankPlacement& rank = plan.ranks[r];
    const NodePlacement& node = plan.nodes[static_cast<std::size_t>(rank.node)];
    ASSERT_EQ(own->rank, rank.rank);
    ASSERT_EQ(own->world_size, static_cast<int>(plan.ranks.size()));
    ASSERT_EQ(own->node, rank.node);
    ASSERT_EQ(own->node_count, static_cast<int>(plan.nodes.size()));
    ASSERT_EQ(own->local_rank, rank.local_rank);
    ASSERT_EQ(own->local_world_size, static_cast<int>(node.ranks.size()));
    ASSERT_STREQ(own->host, node.host.c_str());
    ASSERT_EQ(own->gpus, node.gpus);
    ASSERT_EQ(own->gpu, rank.gpu);
    ASSERT_EQ(own->numa_os_index, rank.numa_os_index);
    ASSERT_EQ(own->cores, static_cast<int>(rank.cores.size()));
    ASSERT_EQ(std::atoi(own->cpus), rank.cpus.front());
  }
}

TEST(LocalRankJob, IsFoundByEveryRankOfFourThousandNodes) {
  ExpectOwnJobs(EvenPlan(4096, 8));
  ExpectOwnJobs(EvenPlan(4096, 8, true));
}

TEST(LocalRankJob, IsFoundByEveryRankOfUnevenNodesInAnyOrder) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same plans in every run
  for (int round = 0; round < 50; ++round) {
    std::vector<int> order;
    const int nodes = 1 + static_cast<int>(random() % 20);
    for (int node = 0; node < nodes; ++node) {
      order.insert(order.end(), random() % 4 == 0 ? 1 + random() % 8 : 4, node);
    }
    if (round % 2 == 1) std::shuffle(order.begin(), order.end(), random);
    LaunchPlan plan = PlanOf(order);
    plan.nodes[random() % plan.nodes.size()].host = std::string(255, 'h');
    ExpectOwnJobs(plan);
  }
}

// As many as make more than one variable.
TEST(LocalRankJob, IsFoundInAListThatGoesOnInOtherVariables) {
  std::vector<int> order;
  for (int rank = 0; rank < 32768; ++rank) order.push_back(rank * 7 % 4096);
  RankJob job = Example();
  job.plan = PlanOf(order);
  const std::string text = EncodeRankJob(job);
  static std::map<std::string, std::string> variables;  // a function alone can be given
  const auto get = [](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  EXPECT_STREQ(JoinRankJob(get), "");
  variables = RankJobVariables(text);
  ASSERT_GT(variables.size(), 2U);
  const std::unique_ptr<const char, void (*)(const char*)> joined(
      JoinRankJob(get), [](const char* joined_text) { free(const_cast<char*>(joined_text)); });
  EXPECT_EQ(joined.get(), text);
  variables.erase("DDLRUN_RANK_JOB_2");
  EXPECT_EQ(JoinRankJob(get), variables.at("DDLRUN_RANK_JOB"));
  ExpectOwnJobs(job.plan, 997);
}

TEST(LocalRankJob, HasOtherGpusWhereSlurmGaveOthersToAnyRankOfTheNode) {
  const std::string text = EncodeRankJob(Example());  // GPUs 0 1 | 2 3 4
  const auto own = std::make_unique<LocalRankJob>();
  const auto has_other = [&](int rank, const char* granted) {
    EXPECT_TRUE(ReadLocalRankJob(text.c_str(), rank, granted, own.get()));
    EXPECT_EQ(own->gpu, rank);
    return own->has_other_gpus;
  };
  for (const char* same : {"", "2,3,4", "2-4", "GPU-3f2a,GPU-77b0,GPU-1", "2"}) {
    // One GPU for three ranks, of which two are planned on others.
    EXPECT_EQ(has_other(4, same), std::string(same) == "2") << same;
  }
  for (const int rank : {2, 3, 4}) {
    EXPECT_TRUE(has_other(rank, "2,3,5"));
    EXPECT_TRUE(has_other(rank, "0-2"));
  }
  EXPECT_FALSE(has_other(0, "0,1"));
  EXPECT_TRUE(has_other(0, "0,3"));
}

TEST(LocalRankJob, OfAnotherTextOrAnotherWorldIsNone) {
  const std::string text = EncodeRankJob(Example());
  const auto own = std::make_unique<LocalRankJob>();
  EXPECT_FALSE(ReadLocalRankJob(text.c_str(), 5, "", own.get()));
  EXPECT_FALSE(ReadLocalRankJob(text.c_str(), -1, "", own.get()));
  for (std::size_t size = 0; size < text.rfind(':'); ++size) {
    EXPECT_FALSE(ReadLocalRankJob(text.substr(0, size).c_str(), 4, "", own.get()))
        << text.substr(0, size);
  }
  EXPECT_FALSE(ReadLocalRankJob((text + " 0").c_str(), 4, "", own.get()));
  std::string long_host = text;
  long_host.insert(long_host.find("gpu%2D0"), std::string(300, 'x'));
  EXPECT_FALSE(ReadLocalRankJob(long_host.c_str(), 0, "", own.get()));
}

// What each of these says would lead a rank to another node or beyond the text.
TEST(LocalRankJob, OfATextThatContradictsItselfIsNone) {
  RankJob job = Example();
  job.plan = PlanOf({0, 0, 1});
  const std::string good = EncodeRankJob(job);
  const auto own = std::make_unique<LocalRankJob>();
  ASSERT_TRUE(ReadLocalRankJob(good.c_str(), 2, "", own.get()));
  const std::vector<std::pair<std::string, std::string>> changes = {
      {" 0 2 3 2 2 2 ", " 0 1 3 2 2 2 "}, {" 0 2 3 2 2 2 ", " 0 2 4 2 2 2 "},
      {" 0 2 3 2 2 2 ", " 0 2 3 2 2 1 "}, {" 0 2 3 2 2 2 ", " 0 2 3 1 2 2 "},
      {" 0 2 3 2 2 2 ", " 0 2 3 2 1 2 "}, {" 1:1 0:0", " 1:2 0:0"},
      {" 1:1:n2:-:- ", " 1:2:n2:-:- "},   {" 1:1:n2:-:- ", " 0:1:n2:-:- "},
      {" 1:1:n2:-:- ", " 1:1:n2:-:x "},   {" 1:1:n2:-:- ", " 1:1:n:x:- "},
      {" 0:1:2 1:1:1", " 0:1:1 1:1:2"},   {" 0:1:2 1:1:1", " 0:1:2 2:1:1"},
      {" 0:1:2 1:1:1", " 0:1:2 1:2:1"},   {" 0:1:2 1:1:1", " 0:1:2 1:1:0"},
      {" 0:1:2 1:1:1", " 0:1:2 -1:1:1"},  {" 0:1:2 1:1:1", " 0:1:2 2147483647:2147483647:1"},
      {" 0:1:2 1:1:1", " 0:1:2"},
  };
  job.plan.cpus_per_rank.reset();
  const std::string text = EncodeRankJob(job);
  for (const auto& [from, to] : changes) {
    std::string wrong = text;
    ASSERT_NE(wrong.find(from), std::string::npos) << from;
    wrong.replace(wrong.find(from), from.size(), to);
    EXPECT_FALSE(ReadLocalRankJob(wrong.c_str(), 2, "", own.get())) << wrong;
  }
}

}  // namespace
}  // namespace launcher
