// SPDX-License-Identifier: Apache-2.0

#include "launcher/rank/gpu_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/error.h"

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

}  // namespace
}  // namespace launcher
