// SPDX-License-Identifier: Apache-2.0

#include "bench/run_log/run_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

std::string Line(const std::string& text) {
  return ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:100) " + text;
}

std::string RefusalOf(RunSteps& steps, const std::string& text) {
  try {
    steps.Add(Line(text));
  } catch (const trainer::Error& error) {
    EXPECT_EQ(error.exit_code(), EX_DATAERR);
    return error.what();
  }
  return "";
}

TEST(RunSteps, HasEveryStepAndTheShapeOfTheRun) {
  RunSteps steps;
  EXPECT_EQ(steps.global_batch(), std::nullopt);
  steps.Add(Line("Num GPUs: 2"));
  steps.Add(Line("Per-GPU Batch Size: 8"));
  for (int i = 0; i < 3; ++i) {
    steps.Add(Line("iteration: " + std::to_string(i)));
    steps.Add(Line("imgs_per_sec: " + std::to_string(10 + i) + ".5"));
    steps.Add("2026-11-22T10:30:00+00:00 step 1/10 14.0 images/s");
    steps.Add(Line("cross_entropy: 7." + std::to_string(i)));
    steps.Add(Line("total_loss: 8.0"));
  }
  EXPECT_EQ(steps.ranks(), 2);
  EXPECT_THAT(steps.global_batch(), Optional(16));
  ASSERT_EQ(steps.steps().size(), 3U);
  EXPECT_EQ(steps.steps()[2].iteration, 2);
  EXPECT_EQ(steps.steps()[2].images_per_second, 12.5);
  EXPECT_EQ(steps.steps()[2].cross_entropy, 7.2);
}

TEST(RunSteps, AStepOfSeveralBatchesHasTheImagesOfAll) {
  RunSteps steps;
  steps.Add("DLL 2020-07-01 10:00:00.1 - PARAMETER mode : train  batch_size : 8  accumulate : 3 ");
  steps.Add(Line("Num GPUs: 2"));
  steps.Add(Line("Per-GPU Batch Size: 8"));
  EXPECT_THAT(steps.global_batch(), Optional(48));
  try {
    steps.Add("DLL 2020-07-01 10:00:00.1 - PARAMETER accumulate : 0 ");
    FAIL();
  } catch (const trainer::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("accumulate is '0'"));
  }
}

TEST(RunSteps, AStepHasTheImagesThatWereAskedForWhereRanksComputeUnequally) {
  RunSteps steps;
  steps.Add(
      "DLL 2020-07-01 10:00:00.1 - PARAMETER mode : train  batch_size : 4  accumulate : 3  "
      "global_batch_size : 32 ");
  steps.Add(Line("Num GPUs: 3"));
  steps.Add(Line("Per-GPU Batch Size: 4"));
  EXPECT_THAT(steps.global_batch(), Optional(32));
}

TEST(RunSteps, AStepIsKnownWhenItsLossHasCome) {
  RunSteps steps;
  steps.Add(Line("iteration: 0"));
  steps.Add(Line("imgs_per_sec: 10.5"));
  EXPECT_TRUE(steps.steps().empty());
}

TEST(RunSteps, LinesOutsideOfAStepDoNotCount) {
  RunSteps steps;
  steps.Add(Line("imgs_per_sec: nan"));
  steps.Add(Line("cross_entropy: x"));
  steps.Add(Line("final_cross_entropy: 7.0"));
  EXPECT_TRUE(steps.steps().empty());
}

TEST(RunSteps, RefusesWhatIsNoStep) {
  RunSteps steps;
  EXPECT_THAT(RefusalOf(steps, "iteration: 1"), HasSubstr("--display_every must be 1"));
  EXPECT_THAT(RefusalOf(steps, "iteration: -1"), HasSubstr("iteration is '-1'"));
  EXPECT_THAT(RefusalOf(steps, "iteration: 0.5"), HasSubstr("iteration is '0.5'"));
  steps.Add(Line("iteration: 0"));
  EXPECT_THAT(RefusalOf(steps, "cross_entropy: 7.0"), HasSubstr("imgs_per_sec"));
  EXPECT_THAT(RefusalOf(steps, "imgs_per_sec: 0.0"), HasSubstr("no speed"));
  EXPECT_THAT(RefusalOf(steps, "imgs_per_sec: -1.0"), HasSubstr("no speed"));
  EXPECT_THAT(RefusalOf(steps, "imgs_per_sec: NaN"), HasSubstr("no number"));
  EXPECT_THAT(RefusalOf(steps, "imgs_per_sec"), HasSubstr("no number"));
  EXPECT_THAT(RefusalOf(steps, "Num GPUs: 0"), HasSubstr("Num GPUs is '0'"));
  EXPECT_THAT(RefusalOf(steps, "Per-GPU Batch Size: 1e30"), HasSubstr("Batch Size"));
}

}  // namespace
}  // namespace bench
