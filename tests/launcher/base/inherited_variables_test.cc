// SPDX-License-Identifier: Apache-2.0

#include "launcher/base/inherited_variables.h"

#include <gtest/gtest.h>

namespace launcher {
namespace {

TEST(InheritedVariables, LeaveTheComponentsOfTheJobItself) {
  const Environment of_batch = {{"SLURM_JOB_ID", "12"},
                                {"SLURM_HET_SIZE", "2"},
                                {"SLURM_JOB_ID_HET_GROUP_0", "12"},
                                {"SLURM_JOB_ID_HET_GROUP_1", "13"}};
  EXPECT_EQ(WithoutInheritedComponents(of_batch), of_batch);
  Environment of_a_step = of_batch;
  of_a_step["SLURM_JOB_ID"] = "13";
  EXPECT_EQ(WithoutInheritedComponents(of_a_step), of_a_step);
}

TEST(InheritedVariables, AreThoseOfTheComponentsOfAnotherJob) {
  EXPECT_EQ(
      WithoutInheritedComponents({{"SLURM_JOB_ID", "14"},
                                  {"SLURM_JOB_NODELIST", "n1"},
                                  {"SLURM_HET_SIZE", "2"},
                                  {"SLURM_JOB_ID_HET_GROUP_0", "12"},
                                  {"SLURM_JOB_NODELIST_HET_GROUP_1", "n[2-3]"},
                                  {"MY_HET_GROUP_1", "x"}}),
      (Environment{{"SLURM_JOB_ID", "14"}, {"SLURM_JOB_NODELIST", "n1"}, {"MY_HET_GROUP_1", "x"}}));
  EXPECT_EQ(WithoutInheritedComponents({}), Environment());
}

}  // namespace
}  // namespace launcher
