// SPDX-License-Identifier: Apache-2.0

#include "launcher/bede/bede_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/base/error.h"

namespace launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The refusal's text; fails when there is none, or with another exit code.
std::string Refusal(const std::vector<std::string>& arguments) {
  try {
    ParseBedeOptions(arguments);
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_USAGE);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}

TEST(BedePar, ReadsEveryDistribution) {
  for (const std::string ranks : {"1ppn", "1ppg", "1ppc", "1ppt"}) {
    EXPECT_EQ(FormatBedePar(ParseBedePar(ranks)), ranks + ":1tpt");
    EXPECT_FALSE(ParseBedePar(ranks).threads_are_asked_for);
    for (const std::string threads : {"1tpc", "1tpt", "none"}) {
      const std::string text = ranks + ":" + threads;
      EXPECT_EQ(FormatBedePar(ParseBedePar(text)), text);
      EXPECT_TRUE(ParseBedePar(text).threads_are_asked_for);
    }
  }
}

TEST(BedePar, IsOneRankPerCoreWhenNothingIsSaid) {
  EXPECT_EQ(FormatBedePar(ParseBedeOptions({"program"}).par), "1ppc:1tpt");
}

TEST(BedePar, RefusesAnythingElseWithTheOnesThereAre) {
  EXPECT_THAT(Refusal({"--bede-par", "2ppc", "program"}),
              HasSubstr("--bede-par 2ppc: '2ppc' is none of 1ppn, 1ppg, 1ppc, 1ppt"));
  EXPECT_THAT(Refusal({"--bede-par=1ppc:4tpc", "program"}),
              HasSubstr("--bede-par 1ppc:4tpc: '4tpc' is none of 1tpc, 1tpt, none"));
  EXPECT_THAT(Refusal({"--bede-par", "1ppc:", "program"}), HasSubstr("'' is none of 1tpc"));
  EXPECT_THAT(Refusal({"--bede-par", ":1tpc", "program"}), HasSubstr("'' is none of 1ppn"));
  EXPECT_THAT(Refusal({"--bede-par=", "program"}), HasSubstr("'' is none of 1ppn"));
  EXPECT_THAT(Refusal({"--bede-par", "1ppc:1tpc:none", "x"}), HasSubstr("'1tpc:none' is none of"));
}

TEST(BedeOptions, HandOnTheRestAsItIs) {
  const std::vector<std::string> rest = {"-np", "4", "--mca", "btl", "tcp,self", "a b", "--", "-x"};
  std::vector<std::string> arguments = {"--bede-par", "1ppg:none"};
  arguments.insert(arguments.end(), rest.begin(), rest.end());
  const BedeOptions options = ParseBedeOptions(arguments);
  EXPECT_EQ(FormatBedePar(options.par), "1ppg:none");
  EXPECT_EQ(options.mpirun_words, rest);
}

TEST(BedeOptions, AreFoundBehindThoseOfMpirun) {
  const BedeOptions options =
      ParseBedeOptions({"-np", "4", "--bede-par=1ppn", "--bede-dry-run", "program", "--help"});
  EXPECT_EQ(FormatBedePar(options.par), "1ppn:1tpt");
  EXPECT_TRUE(options.dry_run);
  EXPECT_FALSE(options.help);
  EXPECT_THAT(options.mpirun_words, ElementsAre("-np", "4", "program", "--help"));
}

TEST(BedeOptions, TakeOnlyTheFirstOfAKind) {
  const BedeOptions options = ParseBedeOptions(
      {"--bede-par", "1ppn", "bede-mpirun", "--bede-par", "1ppc", "--bede-par=1ppt", "program"});
  EXPECT_EQ(FormatBedePar(options.par), "1ppn:1tpt");
  EXPECT_THAT(options.mpirun_words,
              ElementsAre("bede-mpirun", "--bede-par", "1ppc", "--bede-par=1ppt", "program"));
}

TEST(BedeOptions, RefuseALineWithoutAProgram) {
  EXPECT_THAT(Refusal({}), HasSubstr("no program given"));
  EXPECT_THAT(Refusal({"--bede-par", "1ppn"}), HasSubstr("no program given"));
  EXPECT_THAT(Refusal({"program", "--bede-par"}), HasSubstr("--bede-par needs a value"));
}

TEST(BedeOptions, KnowHelpAndVersion) {
  EXPECT_TRUE(ParseBedeOptions({"--help"}).help);
  EXPECT_TRUE(ParseBedeOptions({"--version"}).version);
  EXPECT_THAT(ParseBedeOptions({"--help"}).mpirun_words, IsEmpty());
  const std::string help = BedeHelpText();
  for (const std::string word : {"1ppn", "1ppg", "1ppc", "1ppt", "1tpc", "1tpt", "none"}) {
    EXPECT_THAT(help, HasSubstr(word + " (")) << word;
  }
}

}  // namespace
}  // namespace launcher
