// SPDX-License-Identifier: Apache-2.0
#include "launcher/protocol/rank_environment.h"

#include <stdexcept>

#include "tests/support/refusal.h"
#include "tests/support/test.h"

namespace launcher {
namespace {

using Variables = std::map<std::string, std::string>;

RankInfo Read(const Variables& variables) {
  return ReadRankEnvironment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string Rejection(const Variables& variables) {
  return tests::Rejection<std::runtime_error>([&] { Read(variables); });
}

RankInfo Example() {
  RankInfo info;
  info.rank = 5;
  info.world_size = 8;
  info.local_rank = 1;
  info.local_world_size = 4;
  info.node_rank = 1;
  info.node_count = 2;
  info.gpus = 4;
  info.host = "gpu002";
  info.launcher = "srun";
  info.pmi = "pmix";
  info.run_dir = "/scratch/run 1";
  info.restart_count = 3;
  info.master_address = "gpu001";
  info.master_port = 29500;
  return info;
}

// As the shim sets them for it (tests/cluster/environment.bats).
Variables VariablesOfExample() {
  return {{"RANK", "5"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"MASTER_ADDR", "gpu001"},
          {"MASTER_PORT", "29500"},
          {"DDLRUN_HOST", "gpu002"},
          {"DDLRUN_NODE_RANK", "1"},
          {"DDLRUN_NODE_COUNT", "2"},
          {"DDLRUN_LAUNCHER", "srun"},
          {"DDLRUN_PMI", "pmix"},
          {"DDLRUN_RUN_DIR", "/scratch/run 1"},
          {"DDLRUN_RESTART_COUNT", "3"},
          {"DDLRUN_GPUS", "4"}};
}

void ExpectSame(const RankInfo& a, const RankInfo& b) {
  EXPECT_EQ(a.rank, b.rank);
  EXPECT_EQ(a.world_size, b.world_size);
  EXPECT_EQ(a.local_rank, b.local_rank);
  EXPECT_EQ(a.local_world_size, b.local_world_size);
  EXPECT_EQ(a.node_rank, b.node_rank);
  EXPECT_EQ(a.node_count, b.node_count);
  EXPECT_EQ(a.gpus, b.gpus);
  EXPECT_EQ(a.host, b.host);
  EXPECT_EQ(a.launcher, b.launcher);
  EXPECT_EQ(a.pmi, b.pmi);
  EXPECT_EQ(a.run_dir, b.run_dir);
  EXPECT_EQ(a.restart_count, b.restart_count);
  EXPECT_EQ(a.master_address, b.master_address);
  EXPECT_EQ(a.master_port, b.master_port);
}

TEST(RankEnvironment, ReadsWhatARankIs) {
  ExpectSame(Read(VariablesOfExample()), Example());
  ExpectSame(Read({}), RankInfo{});
}

TEST(RankEnvironment, GpusAreThoseOfThePlanOrElseOfSlurm) {
  EXPECT_EQ(Read({{"SLURM_GPUS_ON_NODE", "4"}}).gpus, 4);
  EXPECT_EQ(Read({{"SLURM_GPUS_ON_NODE", "4"}, {"DDLRUN_GPUS", "0"}}).gpus, 0);
  EXPECT_EQ(Read({{"SLURM_GPUS_ON_NODE", "gpu:4"}}).gpus, 0);
}

TEST(RankEnvironment, IsAWorldOfOneWhenStartedByHand) {
  ExpectSame(Read({}), RankInfo{});
  // A batch script has SLURM_PROCID but is no task of a step; `srun --pty bash` is its only one.
  ExpectSame(Read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), RankInfo{});
  ExpectSame(Read({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}),
             RankInfo{});
  // Since Slurm 26.05 batch scripts have a step id; what they start otherwise has its own ranks.
  const Variables batch = {{"SLURM_STEP_ID", "-5"}, {"SLURM_PROCID", "0"},
                           {"RANK", "1"},           {"WORLD_SIZE", "2"},
                           {"LOCAL_RANK", "1"},     {"LOCAL_WORLD_SIZE", "2"}};
  EXPECT_EQ(Read(batch).rank, 1);
}

TEST(RankEnvironment, AnOddValueOfTheProcessManagerContradictsNothing) {
  Variables variables = VariablesOfExample();
  variables["SLURM_STEP_NUM_TASKS"] = "eight";
  variables["SLURM_PROCID"] = "-5";
  variables["PMIX_RANK"] = "";
  EXPECT_EQ(Read(variables).rank, 5);
}

TEST(RankEnvironment, RejectsToBecomeManyWorldsOfOne) {
  EXPECT_THAT(Rejection({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}}),
              AllOf(HasSubstr("mpirun has started this program 4 times (OMPI_COMM_WORLD_SIZE) "),
                    HasSubstr("as in ddlrun -n 4 PROGRAM")));
  EXPECT_THAT(
      Rejection({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "0"}}),
      HasSubstr("srun has started this program 4 times (SLURM_STEP_NUM_TASKS) without ddlrun"));
  EXPECT_THAT(Rejection({{"RANK", "0"},
                         {"WORLD_SIZE", "1"},
                         {"OMPI_COMM_WORLD_RANK", "0"},
                         {"OMPI_COMM_WORLD_SIZE", "4"}}),
              HasSubstr("OMPI_COMM_WORLD_SIZE=4 contradicts WORLD_SIZE=1; start the program"));
  EXPECT_THAT(Rejection({{"PMIX_RANK", "2"}}), HasSubstr("PMIX_RANK=2 contradicts RANK=0"));
}

TEST(RankEnvironment, RejectsOneOfAPair) {
  EXPECT_THAT(Rejection({{"RANK", "1"}}), HasSubstr("RANK=1 but no WORLD_SIZE"));
  EXPECT_THAT(Rejection({{"WORLD_SIZE", "2"}}), HasSubstr("WORLD_SIZE=2 but no RANK"));
  EXPECT_THAT(Rejection({{"RANK", "1"}, {"WORLD_SIZE", "2"}}), HasSubstr("no LOCAL_RANK"));
  EXPECT_THAT(Rejection({{"LOCAL_RANK", "0"}}), HasSubstr("no LOCAL_WORLD_SIZE"));
  EXPECT_THAT(Rejection({{"DDLRUN_NODE_COUNT", "2"}}), HasSubstr("no DDLRUN_NODE_RANK"));
}

TEST(RankEnvironment, RejectsWhatIsNoNumber) {
  for (const char* value : {"", "-1", "1x", " 1", "99999999999"}) {
    EXPECT_THAT(Rejection({{"RANK", value}, {"WORLD_SIZE", "2"}}),
                HasSubstr("RANK=" + std::string(value) + " is not a number"));
  }
  EXPECT_THAT(Rejection({{"MASTER_PORT", "65536"}}), HasSubstr("MASTER_PORT=65536 is not a port"));
}

TEST(RankEnvironment, RejectsPositionsOutsideTheirRange) {
  Variables variables = VariablesOfExample();
  variables["RANK"] = "8";
  EXPECT_THAT(Rejection(variables), HasSubstr("RANK=8 is not below WORLD_SIZE=8"));
  variables = VariablesOfExample();
  variables["LOCAL_RANK"] = "4";
  EXPECT_THAT(Rejection(variables), HasSubstr("LOCAL_RANK=4 is not below LOCAL_WORLD_SIZE=4"));
  variables = VariablesOfExample();
  variables["LOCAL_WORLD_SIZE"] = "9";
  EXPECT_THAT(Rejection(variables), HasSubstr("LOCAL_WORLD_SIZE=9 is more than WORLD_SIZE=8"));
}

TEST(RankEnvironment, BelievesTheProcessManagerThatStartedIt) {
  Variables variables = VariablesOfExample();  // by srun
  variables["SLURM_STEP_NUM_TASKS"] = "8";
  variables["SLURM_PROCID"] = "4";
  EXPECT_THAT(Rejection(variables), HasSubstr("SLURM_PROCID=4 contradicts RANK=5"));
  variables["SLURM_PROCID"] = "5";
  variables["PMIX_RANK"] = "6";
  EXPECT_THAT(Rejection(variables), HasSubstr("PMIX_RANK=6 contradicts RANK=5"));

  variables = VariablesOfExample();
  variables["DDLRUN_LAUNCHER"] = "mpirun";  // its daemons are tasks of a step with other numbers
  variables["SLURM_STEP_ID"] = "0";
  variables["SLURM_PROCID"] = "1";
  variables["OMPI_COMM_WORLD_RANK"] = "5";
  EXPECT_EQ(Read(variables).rank, 5);
  variables["OMPI_COMM_WORLD_RANK"] = "3";
  EXPECT_THAT(Rejection(variables), HasSubstr("OMPI_COMM_WORLD_RANK=3 contradicts RANK=5"));

  variables["DDLRUN_LAUNCHER"] = "local";
  EXPECT_EQ(Read(variables).rank, 5);
}

}  // namespace
}  // namespace launcher
