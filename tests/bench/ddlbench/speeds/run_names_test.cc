// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/speeds/run_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace bench {
namespace {

using ::testing::Optional;

TEST(ParseCase, ReadsNodesAndGpus) {
  EXPECT_THAT(ParseCase("1n1g"), Optional(Case{1, 1}));
  EXPECT_THAT(ParseCase("4n8g"), Optional(Case{4, 8}));
  EXPECT_THAT(ParseCase("16n16g"), Optional(Case{16, 16}));
  EXPECT_EQ(Case(ParseCase("4n8g").value()).ranks(), 32);
}

TEST(ParseCase, RefusesOtherNames) {
  for (const std::string text :
       {"", "result", "1n", "1n1", "n1g", "1ng", "0n1g", "1n0g", "-1n1g", "1n1gg", "1n1g ", " 1n1g",
        "1N1G", "+1n1g", "10000n1g", "99999999999999999999n1g", "1n1g.old", "1g1n"}) {
    EXPECT_EQ(ParseCase(text), std::nullopt) << text;
  }
}

TEST(Case, IsNamedAsItIsRead) { EXPECT_EQ(NameOf({16, 4}), "16n4g"); }

TEST(Case, HasTheOrderOfRanksThenOfNodes) {
  EXPECT_LT((Case{1, 8}), (Case{2, 8}));
  EXPECT_LT((Case{1, 8}), (Case{2, 4}));
  EXPECT_FALSE((Case{2, 4}) < (Case{1, 8}));
  EXPECT_FALSE((Case{1, 8}) < (Case{1, 8}));
  EXPECT_LT((Case{3, 1}), (Case{1, 4}));
}

TEST(FitsDlperf, HasOneDigitOfNodesAndTwoOfGpus) {
  EXPECT_TRUE(FitsDlperf({9, 99}));
  EXPECT_FALSE(FitsDlperf({10, 8}));
  EXPECT_FALSE(FitsDlperf({1, 100}));
}

TEST(ParseRunName, ReadsAllParts) {
  const auto name = ParseRunName("r50_b128_fp32_1.log");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->model, "r50");
  EXPECT_EQ(name->batch, 128);
  EXPECT_EQ(name->precision, "fp32");
  EXPECT_EQ(name->repeat, 1);
  EXPECT_EQ(FileNameOf(*name), "r50_b128_fp32_1.log");
}

TEST(ParseRunName, RefusesOtherNames) {
  for (const std::string text :
       {"", "r50.log", "r50_b128_fp32.log", "r50_b128_fp32_1", "r50_b128_fp32_1.log.part",
        "r50_128_fp32_1.log", "r50_b_fp32_1.log", "r50_b0_fp32_1.log", "_b128_fp32_1.log",
        "r50_b128__1.log", "r50_b128_fp32_.log", "r50_b128_fp32_0.log", "r50_b128_fp32_x.log",
        "r50_b128_fp32_1_2.log", "r50_b1e3_fp32_1.log", "r50_b128_fp32_1.txt", ".log"}) {
    EXPECT_FALSE(ParseRunName(text)) << text;
  }
}

}  // namespace
}  // namespace bench
