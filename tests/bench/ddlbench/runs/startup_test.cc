// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/startup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Programs kStartupPrograms = {"/bin/ddlbench", "/bin/ddlrun", "/bin/ddltraind"};

std::string StartupRefusal(const std::function<void()>& call, int exit_code) {
  try {
    call();
  } catch (const trainer::Error& error) {
    EXPECT_EQ(error.exit_code(), exit_code);
    return error.what();
  }
  return "";
}

TEST(CheckStartupOptions, RefusesWhatMakesNoSense) {
  StartupOptions options;
  CheckStartupOptions(options);
  options.rounds = 0;
  EXPECT_THAT(StartupRefusal([&] { CheckStartupOptions(options); }, EX_USAGE),
              HasSubstr("--rounds=0"));
  options.rounds = 1;
  options.ranks = -1;
  EXPECT_THAT(StartupRefusal([&] { CheckStartupOptions(options); }, EX_USAGE),
              HasSubstr("--ranks=-1"));
}

TEST(StartupCommand, HasItsRanksWhereTheyAreGiven) {
  StartupOptions options;
  EXPECT_THAT(StartupCommand(options, kStartupPrograms, {}), ElementsAre("/bin/ddlrun", "true"));
  options.ranks = 4;
  options.ddlrun = {"--tcp"};
  EXPECT_THAT(StartupCommand(options, kStartupPrograms, {"--dry-run"}),
              ElementsAre("/bin/ddlrun", "-n", "4", "--tcp", "--dry-run", "true"));
}

TEST(BareStartOf, IsTheSrunWithoutTheShimAndTheListOfHosts) {
  const BareStart start = BareStartOf(
      "the plan\n+ /usr/bin/srun --ntasks=4 --distribution=arbitrary --nodelist=/run/TASKFILE "
      "'--comment=a b' /opt/libexec/ddlrun-rank -- true\n");
  EXPECT_EQ(start.by, "srun");
  ASSERT_EQ(start.commands.size(), 1U);
  EXPECT_THAT(start.commands[0].argv,
              ElementsAre("/usr/bin/srun", "--ntasks=4", "--comment=a b", "true"));
}

TEST(BareStartOf, IsAsManyProgramsAsThereAreRanksOfThisMachine) {
  const BareStart start = BareStartOf(
      "the plan\n+ /opt/libexec/ddlrun-rank --rank 0 -- true\n  (and so for the other 3)\n");
  EXPECT_EQ(start.by, "fork");
  ASSERT_EQ(start.commands.size(), 4U);
  EXPECT_THAT(start.commands[3].argv, ElementsAre("true"));
  EXPECT_EQ(BareStartOf("+ /opt/ddlrun-rank --rank 0 -- true\n").commands.size(), 1U);
}

TEST(BareStartOf, IsAnMpirunOfAsManyRanks) {
  const BareStart start = BareStartOf(
      "+ /usr/bin/mpirun --allow-run-as-root --hostfile /tmp/ddlrun.x/HOSTFILE --map-by slot -n 4 "
      "-x "
      "'DDL_OPTIONS=-mode p:2x1x1x1 ' /opt/libexec/ddlrun-rank -- true\n");
  EXPECT_EQ(start.by, "mpirun");
  ASSERT_EQ(start.commands.size(), 1U);
  EXPECT_THAT(start.commands[0].argv, ElementsAre("/usr/bin/mpirun", "--allow-run-as-root",
                                                  "--oversubscribe", "-n", "4", "true"));
  EXPECT_THAT(BareStartOf("+ mpirun -n 2 /opt/ddlrun-rank -- true\n").commands[0].argv,
              ElementsAre("mpirun", "--oversubscribe", "-n", "2", "true"));
}

TEST(BareStartOf, RefusesWhatItCannotCompareWith) {
  // Components of a heterogeneous job are sruns of their own.
  EXPECT_THAT(
      StartupRefusal(
          [] { BareStartOf("+ srun /opt/ddlrun-rank -- true\n  (and so for the other 1)\n"); },
          EX_CONFIG),
      HasSubstr("several 'srun'"));
  EXPECT_THAT(StartupRefusal([] { BareStartOf("the plan\n"); }, EX_UNAVAILABLE),
              HasSubstr("no command"));
}

TEST(FormatStartup, HasTheDifferencesWithinTheRounds) {
  EXPECT_EQ(FormatStartup({.bare = {10, 20, 30}, .ddlrun = {15, 28, 33}}),
            "| ms      | median    | mean      | sd        | min       | max       |\n"
            "| ------- | --------- | --------- | --------- | --------- | --------- |\n"
            "| bare    | 20.00     | 20.00     | 8.16      | 10.00     | 30.00     |\n"
            "| ddlrun  | 28.00     | 25.33     | 7.59      | 15.00     | 33.00     |\n"
            "| added   | 5.00      | 5.33      | 2.05      | 3.00      | 8.00      |\n");
}

}  // namespace
}  // namespace bench
