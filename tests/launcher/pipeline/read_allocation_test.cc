// SPDX-License-Identifier: Apache-2.0

#include "launcher/pipeline/read_allocation.h"

#include <gtest/gtest.h>

#include "launcher/base/error.h"

namespace launcher {
namespace {

// sbatch -N1 --gres=gpu:2, where the user hides the GPUs.
const Environment kHidden = {{"SLURM_JOB_ID", "7"},
                             {"SLURM_JOB_NODELIST", "n1"},
                             {"SLURMD_NODENAME", "n1"},
                             {"SLURM_GPUS_ON_NODE", "2"},
                             {"CUDA_VISIBLE_DEVICES", ""}};

TEST(ReadAllocation, HiddenGpusContradictNoRunWithoutGpus) {
  Options options;
  EXPECT_THROW(ReadAllocation(options, kHidden, false), LaunchError);
  options.accelerators = 1;
  EXPECT_THROW(ReadAllocation(options, kHidden, false), LaunchError);
  options.accelerators = 0;
  EXPECT_EQ(ReadAllocation(options, kHidden, false).nodes[0].gpus, 2);
  EXPECT_EQ(ReadJob(options, kHidden)->job_id, "7");
  EXPECT_FALSE(ReadJob(options, {}));
}

}  // namespace
}  // namespace launcher
