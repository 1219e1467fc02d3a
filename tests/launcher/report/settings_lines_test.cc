// SPDX-License-Identifier: Apache-2.0

#include "launcher/report/settings_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/cli/options.h"
#include "launcher/cli/site_config.h"

namespace launcher {
namespace {

std::string Joined(const std::vector<ReportLine>& lines) {
  std::string text;
  for (const ReportLine& line : lines) text += line.name + ": " + line.text + "\n";
  return text;
}

TEST(SettingsLines, HaveNoValueThatMayBeSecret) {
  const SiteConfig site = ParseSiteConfig(
      "launcher: local\n"
      "mpi_arguments: [-x, API_KEY=plum, --mca, plm_rsh_args, pear, --mca, pml, ucx]\n"
      "environment: {HF_TOKEN: apple, NCCL_IB_HCA: mlx5_0}\n"
      "srun_arguments: [--container-image=kiwi, --comment, fig]\n",
      "site.yaml");
  const Environment environment = {{"WANDB_API_KEY", "cherry"}, {"NCCL_DEBUG", "INFO"}};
  const Settings settings = MergeSettings(
      ParseOptions({"-x", "MY_SECRET=grape", "--mpiarg", "-x OTHER=melon"}), site, environment);
  const std::string text = Joined(SettingsLines(settings)) + Joined(VariableLines(environment));
  for (const char* secret : {"plum", "pear", "apple", "cherry", "grape", "melon", "kiwi", "fig"}) {
    EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr(secret)));
  }
  EXPECT_THAT(text, ::testing::HasSubstr("launcher: local  # site.yaml:1\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("mpi_arguments: -x API_KEY=... --mca plm_rsh_args ... "
                                         "--mca pml ucx  # site.yaml:2\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("srun_arguments: --container-image=... --comment ...  # "
                                         "site.yaml:4\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("environment.HF_TOKEN: ...  # site.yaml:3\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("environment.NCCL_IB_HCA: mlx5_0  # site.yaml:3\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("environment.MY_SECRET: ...  # command line\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("NCCL_DEBUG: INFO\n"));
}

TEST(VariableLines, NameOthersThatMatterAndNoMore) {
  EXPECT_EQ(Joined(VariableLines({{"LD_PRELOAD", "x"}, {"UCX_OWN", "y"}, {"PASSWORD", "z"}})),
            "set, but not told: LD_PRELOAD, UCX_OWN\n");
  EXPECT_TRUE(VariableLines({{"PASSWORD", "z"}}).empty());
}

}  // namespace
}  // namespace launcher
