// SPDX-License-Identifier: Apache-2.0

#include "launcher/tune/tuned_site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/base/error.h"

namespace launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

KnobResult Result(const std::string& title, const Change& before, const Change& change,
                  bool chosen) {
  KnobResult result;
  result.title = title;
  result.tried = {{"as it is", before, {200, 200, 200}},
                  {"another", Together(before, change), {100, 101, 99}}};
  result.best = chosen ? 1 : 0;
  return result;
}

TunedSite Example() {
  const Change network = {{},
                          {{"OMPI_MCA_btl_tcp_if_include", "eth0"}, {"UCX_NET_DEVICES", "eth0"}}};
  const Change order = {{{"rank_order", "node"}}, {}};
  return {{"Made by a test."},
          {Result("network", {}, network, true), Result("order", network, order, true),
           Result("cores", Together(network, order), {{{"bind", "none"}}, {}}, false)},
          {"n3 is slow"}};
}

std::string Written(const std::string& old_text) {
  return TunedSiteText(Example(), ParseSiteConfig(old_text, "old.yaml"), old_text);
}

TEST(TunedSite, KeepsTheOldFileAndReplacesWhatIsBetter) {
  const std::string old_text =
      "# Ours.\n"
      "launcher: srun   # always\n"
      "mpi_arguments:\n"
      "  - --mca\n"
      "# Wrong since 2020.\n"
      "rank_order: cyclic\n"
      "machine:\n"
      "  gpu: V100\n"
      "\n"
      "environment:\n"
      "  # told by a vendor\n"
      "  UCX_NET_DEVICES: eth1\n"
      "  OWN: 'a \"b\" \\c'\n";
  const std::string text = Written(old_text);
  const SiteConfig site = ParseSiteConfig(text, "new.yaml");
  EXPECT_EQ(site.rank_order->value, "node");
  EXPECT_EQ(site.launcher->value, "srun");
  EXPECT_EQ(site.mpi_arguments->value.size(), 1U);
  EXPECT_EQ(site.machine.gpu, "V100");
  EXPECT_EQ(site.environment.at("UCX_NET_DEVICES").value, "eth0");
  EXPECT_EQ(site.environment.at("OMPI_MCA_btl_tcp_if_include").value, "eth0");
  EXPECT_EQ(site.environment.at("OWN").value, "a \"b\" \\c");
  EXPECT_FALSE(site.bind);
  EXPECT_THAT(text, HasSubstr("# Ours.\nlauncher: srun   # always\n"));
  EXPECT_THAT(text, Not(HasSubstr("Wrong since")));
  EXPECT_THAT(text, Not(HasSubstr("cyclic")));
}

TEST(TunedSite, HasTheFiguresOfEveryValue) {
  const std::string text = Written("");
  EXPECT_THAT(text, HasSubstr("# Made by a test.\n"));
  EXPECT_THAT(text, HasSubstr("# order: another is better\n"
                              "#   as it is: 200 us (scatter 0.00 us)\n"
                              "#   another: 100 us (scatter 2.00 us)\n"
                              "rank_order: node\n"));
  // Both variables of one choice have the same figures, once.
  EXPECT_THAT(text, HasSubstr("environment:\n"
                              "  # network: another is better\n"
                              "  #   as it is: 200 us (scatter 0.00 us)\n"
                              "  #   another: 100 us (scatter 2.00 us)\n"
                              "  OMPI_MCA_btl_tcp_if_include: \"eth0\"\n"
                              "  UCX_NET_DEVICES: \"eth0\"\n"));
  EXPECT_THAT(text, HasSubstr("# cores: kept as it is"));
  EXPECT_THAT(text, HasSubstr("# n3 is slow\n"));
}

TEST(TunedSite, WithNothingBetterIsTheOldFile) {
  TunedSite tuned = Example();
  for (KnobResult& result : tuned.results) {
    result.best = 0;
    result.tried[0].change = {};  // nothing was chosen before it
  }
  const std::string old_text = "environment: {A: b}\nbind: none\n";
  const std::string text = TunedSiteText(tuned, ParseSiteConfig(old_text, "old.yaml"), old_text);
  EXPECT_THAT(text, HasSubstr(old_text));
  EXPECT_EQ(ParseSiteConfig(text, "new.yaml").environment.at("A").value, "b");
}

TEST(TunedSite, IsKnownToBePossibleBefore) {
  for (const char* old_text : {"", "launcher: srun\n", "environment: {A: b}\nbind: auto\n"}) {
    EXPECT_NO_THROW(CheckCanBeTuned(ParseSiteConfig(old_text, "old.yaml"), old_text)) << old_text;
  }
  const char* braces = "{launcher: srun}\n";
  EXPECT_THROW(CheckCanBeTuned(ParseSiteConfig(braces, "old.yaml"), braces), LaunchError);
}

TEST(TunedSite, OfAFileInBracesIsRefused) {
  try {
    Written("{launcher: srun, rank_order: cyclic}\n");
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.exit_code(), EX_CONFIG);
    EXPECT_THAT(error.what(), HasSubstr("old.yaml: write each of its keys at the beginning"));
  }
}

}  // namespace
}  // namespace launcher
