// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/gpu_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/base/error.h"

namespace launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string MessageOf(int planned, const Environment& environment, int devices = 0) {
  try {
    CheckGpus(planned, "n2", environment, devices);
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_CONFIG);
    return error.what();
  }
  return "accepted";
}

TEST(GpuCheck, AcceptsANodeThatHasWhatWasPlanned) {
  const Environment environment = {
      {"SLURM_GPUS_ON_NODE", "4"}, {"SLURM_STEP_GPUS", "0-3"}, {"CUDA_VISIBLE_DEVICES", "0,1,2,3"}};
  EXPECT_EQ(MessageOf(4, environment, 4), "accepted");
  EXPECT_EQ(MessageOf(4, environment, 8), "accepted");
  EXPECT_EQ(MessageOf(4, environment), "accepted");
}

TEST(GpuCheck, AcceptsANodeThatSaysNothing) { EXPECT_EQ(MessageOf(4, {}), "accepted"); }

TEST(GpuCheck, RefusesAnotherNumberInAnyVariable) {
  EXPECT_THAT(MessageOf(4, {{"SLURM_GPUS_ON_NODE", "2"}}),
              HasSubstr("SLURM_GPUS_ON_NODE=2 on this node, but the plan counts on 4 here"));
  EXPECT_THAT(MessageOf(4, {{"SLURM_STEP_GPUS", "0,2-3"}}), HasSubstr("SLURM_STEP_GPUS=0,2-3"));
  EXPECT_THAT(MessageOf(2, {{"CUDA_VISIBLE_DEVICES", "GPU-3f2a-11,GPU-77b0-0,GPU-1-2"}}),
              HasSubstr("CUDA_VISIBLE_DEVICES=GPU-3f2a-11"));
}

TEST(GpuCheck, RefusesANodeThatHasLostAGpu) {
  EXPECT_THAT(MessageOf(4, {{"SLURM_GPUS_ON_NODE", "4"}}, 3),
              AllOf(HasSubstr("3 GPU devices in /dev, but the plan counts on 4 here"),
                    HasSubstr("#SBATCH --exclude=n2")));
}

TEST(GpuCheck, SlicesShareADevice) {
  const Environment slices = {{"SLURM_GPUS_ON_NODE", "3"},
                              {"CUDA_VISIBLE_DEVICES", "MIG-a,MIG-b,MIG-c"}};
  EXPECT_EQ(MessageOf(3, slices, 1), "accepted");
  EXPECT_THAT(MessageOf(4, slices, 1), HasSubstr("SLURM_GPUS_ON_NODE=3"));
}

// gpus[i] is that of local rank i on the second node; the first has one rank with GPU 0.
Plan PlanOf(const std::vector<int>& gpus) {
  Plan plan;
  plan.nodes.resize(2);
  for (std::size_t i = 0; i <= gpus.size(); ++i) {
    RankPlan rank;
    rank.rank = static_cast<int>(i);
    rank.node = i == 0 ? 0 : 1;
    rank.gpu = i == 0 ? 0 : gpus[i - 1];
    plan.nodes[static_cast<std::size_t>(rank.node)].ranks.push_back(rank.rank);
    plan.ranks.push_back(rank);
  }
  return plan;
}

// The GPUs of the second node after Slurm's word; those before it, if that changed nothing.
std::vector<int> Taken(const std::vector<int>& planned, const std::string& granted) {
  Plan plan = PlanOf(planned);
  const bool has_changed = TakeGrantedGpus(granted, 1, &plan);
  std::vector<int> gpus;
  for (const int rank : plan.nodes[1].ranks) {
    gpus.push_back(plan.ranks[static_cast<std::size_t>(rank)].gpu);
  }
  EXPECT_EQ(has_changed, gpus != planned);
  EXPECT_EQ(plan.ranks[0].gpu, 0);
  return gpus;
}

TEST(TakeGrantedGpus, GivesRanksThoseOfTheirOwnNode) {
  using ::testing::ElementsAre;
  EXPECT_THAT(Taken({0, 1}, "2,3"), ElementsAre(2, 3));
  EXPECT_THAT(Taken({0, 1}, "0-1"), ElementsAre(0, 1));
  EXPECT_THAT(Taken({0, 1}, "1-3"), ElementsAre(1, 2));
  EXPECT_THAT(Taken({0, 1, 0, 1}, "2,3"), ElementsAre(2, 3, 2, 3));
  EXPECT_THAT(Taken({1, 0}, "0,1"), ElementsAre(0, 1));
  EXPECT_THAT(Taken({0, 1}, "2,1"), ElementsAre(2, 1));
}

TEST(TakeGrantedGpus, ChangesNothingWhereTheListSaysLess) {
  using ::testing::ElementsAre;
  EXPECT_THAT(Taken({0, 1}, "2"), ElementsAre(0, 1));
  EXPECT_THAT(Taken({0, 1}, ""), ElementsAre(0, 1));
  EXPECT_THAT(Taken({0, 1}, "GPU-3f,GPU-77"), ElementsAre(0, 1));
  EXPECT_THAT(Taken({-1, -1}, "2,3"), ElementsAre(-1, -1));
}

}  // namespace
}  // namespace launcher
