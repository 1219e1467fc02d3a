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

const Environment kOfARank = {{"DDLRUN_LAUNCHER", "local"},
                              {"RANK", "1"},
                              {"MASTER_ADDR", "n1"},
                              {"DDLRUN_MASTER_ADDR", "n1"},
                              {"MASTER_PORT", "61234"},
                              {"DDLRUN_MASTER_PORT", "61234"},
                              {"OMP_NUM_THREADS", "8"},
                              {"DDLRUN_OMP_NUM_THREADS", "8"},
                              {"DDL_HOST_PORT", "2200"},
                              {"DDL_HOST_LIST", "n1:0,1"},
                              {"DDL_OPTIONS", "-mode p:2x1x1x1 "},
                              {"DDLRUN_HEARTBEAT", "beats/1"},
                              {"MINE", "x"}};

TEST(InheritedVariables, OfAnEnclosingLaunchAreNobodysWish) {
  EXPECT_EQ(WithoutEnclosingLaunch(kOfARank),
            (Environment{{"DDLRUN_LAUNCHER", "local"}, {"RANK", "1"}, {"MINE", "x"}}));
}

TEST(InheritedVariables, StayWhereARankHasSetThemAnew) {
  for (const auto& [name, value] :
       Environment{{"MASTER_ADDR", "n2"}, {"MASTER_PORT", "29500"}, {"OMP_NUM_THREADS", "1"}}) {
    Environment environment = kOfARank;
    environment[name] = value;
    environment = WithoutEnclosingLaunch(environment);
    EXPECT_EQ(environment[name], value);
    EXPECT_FALSE(environment.contains("DDLRUN_" + name));
  }
}

TEST(InheritedVariables, StayOutsideOfALaunch) {
  const Environment wishes = {{"MASTER_ADDR", "n2"},     {"MASTER_PORT", "29500"},
                              {"OMP_NUM_THREADS", "4"},  {"DDL_OPTIONS", "-mode r:2x1x1x1 "},
                              {"DDL_HOST_LIST", "n2:0"}, {"DDLRUN_HEARTBEAT", "beats"}};
  EXPECT_EQ(WithoutEnclosingLaunch(wishes), wishes);
}

TEST(InheritedVariables, OfTorchrunSayNotWhereRanksMeet) {
  EXPECT_EQ(WithoutEnclosingLaunch({{"TORCHELASTIC_RUN_ID", "none"},
                                    {"MASTER_ADDR", "localhost"},
                                    {"MASTER_PORT", "29500"},
                                    {"OMP_NUM_THREADS", "1"}}),
            (Environment{{"TORCHELASTIC_RUN_ID", "none"}, {"OMP_NUM_THREADS", "1"}}));
}

}  // namespace
}  // namespace launcher
