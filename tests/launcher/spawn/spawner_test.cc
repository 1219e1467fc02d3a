// SPDX-License-Identifier: Apache-2.0

#include "launcher/spawn/spawner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/error.h"
#include "launcher/spawn/quoting.h"

namespace launcher {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

// ranks[r] is the node of rank r.
Job JobOf(const std::vector<int>& nodes_of_ranks) {
  Job job;
  for (const int node : nodes_of_ranks) {
    RankPlan rank;
    rank.rank = static_cast<int>(job.plan.ranks.size());
    rank.node = node;
    while (job.plan.nodes.size() <= static_cast<std::size_t>(node)) {
      job.plan.nodes.emplace_back().host = "n" + std::to_string(job.plan.nodes.size() + 1);
    }
    NodePlan& own = job.plan.nodes[static_cast<std::size_t>(node)];
    rank.local_rank = static_cast<int>(own.ranks.size());
    own.ranks.push_back(rank.rank);
    job.plan.ranks.push_back(rank);
  }
  job.program = {"python", "train.py", "--name=a b"};
  job.shim = "/opt/libexec/ddlrun/ddlrun-rank";
  job.run_directory = "/tmp/ddlrun.abc";
  job.mpirun = "/usr/bin/mpirun";
  job.environment = {{"PATH", "/bin"}, {"HOSTNAME", "n1"}, {"CUDA_VISIBLE_DEVICES", "0"}};
  job.rank_settings = {{"DDLRUN_RANK_JOB", "{}"}, {"DDL_HOST_PORT", "2200"}};
  return job;
}

std::string MpirunLine(const Job& job) {
  const std::vector<ChildCommand> commands = MakeMpirunCommands(job);
  EXPECT_EQ(commands.size(), 1U);
  EXPECT_EQ(commands[0].rank, -1);
  return QuoteCommand(commands[0].argv);
}

TEST(MpirunSpawner, OneMachineInheritsItsEnvironment) {
  EXPECT_EQ(MpirunLine(JobOf({0, 0})),
            "/usr/bin/mpirun --hostfile /tmp/ddlrun.abc/HOSTFILE --map-by slot --bind-to none -n 2 "
            "-x DDLRUN_RANK_JOB -x DDL_HOST_PORT=2200 /opt/libexec/ddlrun/ddlrun-rank -- python "
            "train.py '--name=a b'");
}

TEST(MpirunSpawner, OtherNodesGetTheEnvironmentByName) {
  Job job = JobOf({0, 0, 1, 1});
  job.has_remote_ranks = true;
  job.mpi_arguments = {"--mca", "btl", "tcp,self"};
  EXPECT_EQ(MpirunLine(job),
            "/usr/bin/mpirun --hostfile /tmp/ddlrun.abc/HOSTFILE --map-by slot --bind-to none -n 4 "
            "--mca btl tcp,self -x PATH -x DDLRUN_RANK_JOB -x DDL_HOST_PORT=2200 "
            "/opt/libexec/ddlrun/ddlrun-rank -- python train.py '--name=a b'");
}

TEST(MpirunSpawner, AskedExportsGoThoughTheyAreDenied) {
  Job job = JobOf({0, 1});
  job.has_remote_ranks = true;
  job.asked_exports = {"CUDA_VISIBLE_DEVICES"};
  EXPECT_THAT(MakeMpirunCommands(job)[0].argv, Contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_THAT(MakeMpirunCommands(job)[0].argv, testing::Not(Contains("HOSTNAME")));
}

TEST(MpirunSpawner, CyclicOrderIsMappedByNodeAlsoWhenUneven) {
  EXPECT_THAT(MpirunLine(JobOf({0, 1, 0, 1, 0})),
              testing::HasSubstr("--map-by node --bind-to none"));
}

TEST(MpirunSpawner, AnyOtherOrderNeedsTheRankfile) {
  EXPECT_THAT(MpirunLine(JobOf({0, 1, 1, 0})),
              testing::HasSubstr("HOSTFILE --rankfile /tmp/ddlrun.abc/RANKFILE -n 4"));
}

TEST(MpirunSpawner, TheUsersRankfileIsGivenAsItIsAndBindsByItself) {
  Job job = JobOf({0, 0});
  job.rankfile = "my.rankfile";
  EXPECT_THAT(MpirunLine(job), testing::HasSubstr("HOSTFILE --rankfile my.rankfile -n 2"));
}

TEST(MpirunSpawner, RootAndSlurmNeedMore) {
  Job job = JobOf({0});
  job.is_root = true;
  job.in_slurm = true;
  EXPECT_THAT(
      MpirunLine(job),
      testing::StartsWith("/usr/bin/env SLURM_NODELIST=n1 SLURM_TASKS_PER_NODE=1 "
                          "/usr/bin/mpirun --allow-run-as-root --map-by slot --bind-to none -n 1"));
}

TEST(MpirunSpawner, SettingsAreInTheEnvironmentOfMpirunToo) {
  EXPECT_THAT(MakeMpirunCommands(JobOf({0}))[0].environment,
              ElementsAre("CUDA_VISIBLE_DEVICES=0", "DDLRUN_RANK_JOB={}", "DDL_HOST_PORT=2200",
                          "HOSTNAME=n1", "PATH=/bin"));
}

TEST(LocalSpawner, StartsOneShimPerRank) {
  const std::vector<ChildCommand> commands = MakeLocalCommands(JobOf({0, 0}));
  ASSERT_EQ(commands.size(), 2U);
  EXPECT_EQ(commands[1].rank, 1);
  EXPECT_THAT(commands[1].argv, ElementsAre("/opt/libexec/ddlrun/ddlrun-rank", "--rank", "1", "--",
                                            "python", "train.py", "--name=a b"));
  EXPECT_THAT(commands[1].environment, Contains("DDL_HOST_PORT=2200"));
}

TEST(LocalSpawner, RefusesASecondNode) {
  EXPECT_THROW(MakeLocalCommands(JobOf({0, 1})), LaunchError);
}

TEST(LocalSpawner, RefusesAnotherMachine) {
  Job job = JobOf({0});
  job.has_remote_ranks = true;
  EXPECT_THROW(MakeLocalCommands(job), LaunchError);
}

TEST(ChooseSpawner, TakesMpirunForMoreThanOneRankWhereItIs) {
  const bool remote = true;
  EXPECT_EQ(ChooseSpawner(JobOf({0}).plan, !remote, true).name, "local");
  EXPECT_EQ(ChooseSpawner(JobOf({0, 0}).plan, !remote, true).name, "mpirun");
  EXPECT_EQ(ChooseSpawner(JobOf({0, 0}).plan, !remote, false).name, "local");
}

TEST(ChooseSpawner, NeedsMpirunForAnotherMachine) {
  const bool remote = true;
  EXPECT_EQ(ChooseSpawner(JobOf({0}).plan, remote, true).name, "mpirun");
  EXPECT_THROW(ChooseSpawner(JobOf({0}).plan, remote, false), LaunchError);
}

TEST(FindSpawner, KnowsThoseThatOptionsMayName) {
  EXPECT_EQ(FindSpawner("mpirun").name, "mpirun");
  EXPECT_EQ(FindSpawner("local").name, "local");
  EXPECT_THROW(FindSpawner("srun"), LaunchError);
}

}  // namespace
}  // namespace launcher
