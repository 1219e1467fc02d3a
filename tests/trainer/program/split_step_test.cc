// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/split_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/core/error.h"
#include "trainer/program/recipe.h"

namespace trainer {
namespace {

using testing::HasSubstr;

Options Split(const std::vector<std::string>& arguments, int ranks) {
  Options options = ParseOptions(arguments).options;
  SplitStep(options, ranks);
  return options;
}

std::string SplitRefusal(const std::vector<std::string>& arguments, int ranks) {
  try {
    Split(arguments, ranks);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_CONFIG);
    return error.what();
  }
  return "not refused";
}

TEST(SplitStep, KeepsTheImagesOfAStepForAnyRanks) {
  for (const int ranks : {4, 3, 2, 1}) {
    const Options options = Split({"--global_batch_size=32", "--batch_size=8"}, ranks);
    EXPECT_EQ(GlobalBatchOf(options, ranks).images(), 32);
    EXPECT_LE(options.batch_size, 8);
  }
}

TEST(SplitStep, SaysWhatEachRankComputes) {
  const auto line = [](const std::vector<std::string>& arguments, int ranks) {
    return DescribeStep(Split(arguments, ranks), ranks);
  };
  EXPECT_EQ(line({"--batch_size=8"}, 4), "");
  EXPECT_EQ(line({"--global_batch_size=32", "--batch_size=8"}, 4),
            "--global_batch_size=32: 4 ranks x 8");
  EXPECT_EQ(
      line({"--global_batch_size=32", "--batch_size=8"}, 3),
      "--global_batch_size=32: 8 batches of 4 over 3 ranks; 2 compute 3 in a step, the others "
      "2");
  EXPECT_EQ(
      line({"--global_batch_size=5", "--batch_size=1"}, 4),
      "--global_batch_size=5: 5 batches of 1 over 4 ranks; 1 computes 2 in a step, the others "
      "1");
}

TEST(SplitStep, RefusesWhatCannotBeSplitAndNamesWhatCan) {
  EXPECT_EQ(SplitRefusal({"--global_batch_size=3"}, 4),
            "--global_batch_size=3 is less than an image for each of 4 ranks: give 4 or more, or "
            "start fewer ranks");
  EXPECT_EQ(SplitRefusal({"--global_batch_size=37", "--batch_size=16"}, 4),
            "--global_batch_size=37: 4 ranks cannot compute so many images in batches of equal "
            "size up to --batch_size=16, but for very small ones: give 36 or 38, or start another "
            "number of ranks");
  EXPECT_THAT(SplitRefusal({"--global_batch_size=16777213"}, 7),
              HasSubstr("batches of equal size, but for very small ones: give 16777212 or "));
}

TEST(SplitStep, LeavesEvaluationItsBatch) {
  EXPECT_EQ(Split({"--mode=evaluate", "--global_batch_size=32"}, 3).batch_size, 10);
  EXPECT_EQ(Split({"--mode=evaluate", "--global_batch_size=2"}, 3).batch_size, 1);
  const Options options = Split({"--mode=evaluate", "--global_batch_size=32", "--batch_size=5"}, 3);
  EXPECT_EQ(options.batch_size, 5);
  EXPECT_EQ(options.accumulate, 1);
  EXPECT_EQ(DescribeStep(options, 3), "");
}

TEST(SplitStep, StaysWhereARecipeIsApplied) {
  const std::vector<std::string> arguments = {"--recipe=nvidia", "--global_batch_size=1024",
                                              "--batch_size=256"};
  ParsedOptions parsed = ParseOptions(arguments);
  SplitStep(parsed.options, 3);
  const Options options = ApplyRecipe(parsed, arguments, 3).options;
  EXPECT_EQ(GlobalBatchOf(options, 3), (GlobalBatch{128, 3, 3, 1, true}));
}

TEST(SplitStep, OptionsThatFixASplitAreRefused) {
  const auto refusal = [](const std::vector<std::string>& arguments) -> std::string {
    try {
      ParseOptions(arguments);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), EX_USAGE);
      return error.what();
    }
    return "not refused";
  };
  EXPECT_THAT(refusal({"--global_batch_size=32", "--accumulate=2"}),
              HasSubstr("--accumulate follows from --global_batch_size"));
  EXPECT_THAT(
      refusal({"--global_batch_size=32", "--precision=fp16", "--reduce_precision=16bit"}),
      HasSubstr("--global_batch_size makes several of a step where the ranks become fewer"));
  for (const char* const wrong : {"0", "-1", "16777217", "many", "1.5"}) {
    EXPECT_THAT(refusal({std::string("--global_batch_size=") + wrong}),
                HasSubstr("--global_batch_size"))
        << wrong;
  }
}

}  // namespace
}  // namespace trainer
