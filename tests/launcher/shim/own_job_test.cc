// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/own_job.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "launcher/rank/rank_job.h"

namespace launcher {
namespace {

RankJob Example() {
  RankJob job;
  job.spawner = "srun";
  job.pmi = "none";
  job.pause = true;
  job.check = false;
  job.planned_for = "allowed=f online=0-3";
  job.run_directory = "/tmp/a \"b\":%\n\xc3\xa4";
  job.master_address = "n1";
  job.master_port = 61234;
  job.restart_count = 3;
  job.plan.cpus_per_rank = 2;
  job.plan.cpus_are_cores = true;
  for (int i = 0; i < 5; ++i) {  // 0 1 | 2 3 4
    if (i == 0 || i == 2) job.plan.nodes.emplace_back().host = "gpu-" + std::to_string(i);
    job.plan.nodes.back().gpus = i;
    RankPlan rank;
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

TEST(OwnJob, IsWhatDdlrunWroteForThisRank) {
  const std::string text = EncodeRankJob(Example());
  const auto own = std::make_unique<OwnJob>();
  ASSERT_TRUE(ReadOwnJob(text.c_str(), 4, "", own.get()));
  EXPECT_STREQ(own->spawner, "srun");
  EXPECT_STREQ(own->pmi, "none");
  EXPECT_TRUE(own->pause);
  EXPECT_TRUE(own->bind);
  EXPECT_FALSE(own->check);
  EXPECT_STREQ(own->planned_for, "allowed=f online=0-3");
  EXPECT_STREQ(own->run_directory, "/tmp/a \"b\":%\n\xc3\xa4");
  EXPECT_STREQ(own->log_directory, "");
  EXPECT_STREQ(own->master_address, "n1");
  EXPECT_EQ(own->master_port, 61234);
  EXPECT_EQ(own->restart_count, 3);
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
  EXPECT_STREQ(own->cpus, "0-2,8");
}

TEST(OwnJob, OfTheFirstRankIsFoundToo) {
  const std::string text = EncodeRankJob(Example());
  const auto own = std::make_unique<OwnJob>();
  ASSERT_TRUE(ReadOwnJob(text.c_str(), 0, "", own.get()));
  EXPECT_STREQ(own->host, "gpu-0");
  EXPECT_EQ(own->local_world_size, 2);
  EXPECT_EQ(std::string(own->cpus).substr(0, 2), "- ");
}

TEST(OwnJob, HasOtherGpusWhereSlurmGaveOthersToAnyRankOfTheNode) {
  const std::string text = EncodeRankJob(Example());  // GPUs 0 1 | 2 3 4
  const auto own = std::make_unique<OwnJob>();
  const auto has_other = [&](int rank, const char* granted) {
    EXPECT_TRUE(ReadOwnJob(text.c_str(), rank, granted, own.get()));
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

TEST(OwnJob, OfAnotherTextOrAnotherWorldIsNone) {
  const std::string text = EncodeRankJob(Example());
  const auto own = std::make_unique<OwnJob>();
  EXPECT_FALSE(ReadOwnJob(text.c_str(), 5, "", own.get()));
  EXPECT_FALSE(ReadOwnJob(text.c_str(), -1, "", own.get()));
  for (std::size_t size = 0; size < text.rfind(':'); ++size) {
    EXPECT_FALSE(ReadOwnJob(text.substr(0, size).c_str(), 4, "", own.get()))
        << text.substr(0, size);
  }
  EXPECT_FALSE(ReadOwnJob((text + " 0").c_str(), 4, "", own.get()));
  const std::string long_host = text.substr(0, text.find("gpu")) + std::string(300, 'x') + ":1";
  EXPECT_FALSE(ReadOwnJob(long_host.c_str(), 0, "", own.get()));
}

}  // namespace
}  // namespace launcher
