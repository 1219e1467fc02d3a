// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "launcher/launch/launcher.h"

namespace launcher {
namespace {

bool MayHide(const std::vector<std::string>& arguments, const Environment& environment = {}) {
  LaunchRequest job;
  job.mpi_arguments = arguments;
  job.environment = environment;
  return MakeMpirunCommands(job)[0].may_hide_events;
}

TEST(HiddenReports, ByArgumentsOfMpirunThatSendTheOutputElsewhere) {
  EXPECT_FALSE(MayHide({}));
  EXPECT_FALSE(MayHide({"--mca", "btl", "tcp,self"}));
  EXPECT_TRUE(MayHide({"--output-filename", "out:nocopy"}));
  EXPECT_TRUE(MayHide({"--output", "file=out:nocopy"}));
  EXPECT_TRUE(MayHide({"-xterm", "0"}));
  EXPECT_TRUE(MayHide({"--merge-stderr-to-stdout"}));
  EXPECT_TRUE(MayHide({"--mca", "orte_output_filename", "out:nocopy"}));
}

TEST(HiddenReports, ByVariablesForTheSame) {
  EXPECT_FALSE(MayHide({}, {{"OMPI_MCA_plm_rsh_agent", "output"}, {"MY_output", "1"}}));
  EXPECT_TRUE(MayHide({}, {{"OMPI_MCA_orte_output_filename", "out:nocopy"}}));
  EXPECT_TRUE(MayHide({}, {{"PRTE_MCA_prte_xterm", "0"}}));
}

}  // namespace
}  // namespace launcher
