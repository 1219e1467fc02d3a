// SPDX-License-Identifier: Apache-2.0

#include "launcher/spawn/slurm_for_mpirun.h"

#include <gtest/gtest.h>

namespace launcher {
namespace {

using Variables = std::map<std::string, std::string>;

TEST(SlurmForMpirun, WritesWhatSlurmWouldForSoManyTasks) {
  EXPECT_EQ(SlurmVariablesForMpirun({{"n1", 4}}),
            (Variables{{"SLURM_NODELIST", "n1"}, {"SLURM_TASKS_PER_NODE", "4"}}));
  EXPECT_EQ(SlurmVariablesForMpirun({{"n1", 4}, {"n2", 4}, {"n3", 2}, {"n5", 4}}),
            (Variables{{"SLURM_NODELIST", "n[1-3,5]"}, {"SLURM_TASKS_PER_NODE", "4(x2),2,4"}}));
}

}  // namespace
}  // namespace launcher
