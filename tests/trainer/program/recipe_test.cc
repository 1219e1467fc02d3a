// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "trainer/core/error.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

OptionsOfRecipe Apply(std::vector<std::string> arguments, int ranks) {
  return ApplyRecipe(ParseOptions(arguments), arguments, ranks);
}

std::string RecipeRefusal(const std::vector<std::string>& arguments, int ranks) {
  try {
    Apply(arguments, ranks);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_USAGE);
    return error.what();
  }
  return "not refused";
}

TEST(Recipe, WithoutOneOptionsAreAsTheyWere) {
  const OptionsOfRecipe run = Apply({"--batch_size=8", "--lr_init=0.3"}, 4);
  EXPECT_THAT(run.lines, IsEmpty());
  EXPECT_EQ(run.options.schedule.lr_init, 0.3);
  EXPECT_EQ(run.options.optimizer, OptimizerKind::kSgd);
}

TEST(Recipe, OfMlperfIsTheRowOfItsBatch) {
  const OptionsOfRecipe run = Apply({"--recipe=mlperf", "--batch_size=128"}, 64);
  const Options& options = run.options;
  EXPECT_EQ(options.recipe, "mlperf");
  EXPECT_EQ(options.optimizer, OptimizerKind::kLars);
  EXPECT_EQ(options.schedule.lr_schedule, RateDecay::kPolynomial);
  EXPECT_EQ(options.schedule.lr_scaling, RateScaling::kNone);
  EXPECT_EQ(options.schedule.lr_init, 17);
  EXPECT_EQ(options.schedule.lr_end, 0.0001);
  EXPECT_EQ(options.schedule.lr_warmup_epochs, 5);
  EXPECT_EQ(options.schedule.lr_decay_steps, 0);
  EXPECT_EQ(options.schedule.num_iter, 44);
  EXPECT_EQ(options.momentum, 0.9);
  EXPECT_EQ(options.weight_decay, 2e-4);
  EXPECT_EQ(options.label_smoothing, 0.1);
  EXPECT_EQ(options.eval_every, 4);
  EXPECT_EQ(options.stop_at_top1, 75.9);
  EXPECT_THAT(run.lines[0],
              AllOf(HasSubstr("recipe mlperf for 8192 images in a step: "),
                    HasSubstr("rcps_resnet.json), the row of 8192: 42 epochs to 75.9 %")));
  EXPECT_THAT(run.lines, Contains("recipe mlperf: --lr_init=17 (the row of 8192)"));
  EXPECT_EQ(run.lines.size(), 15);  // a line for each value
  // Every batch of the note: the ends of the decay rise.
  std::int64_t end = 0;
  for (const int batch : {1632, 3264, 4096, 8192, 13056, 32768, 65536}) {
    const Options row =
        Apply({"--recipe=mlperf", "--batch_size=" + std::to_string(batch / 8)}, 8).options;
    EXPECT_GE(row.schedule.num_iter, end);
    end = row.schedule.num_iter;
  }
  EXPECT_EQ(end, 89);
}

// Half way between 4,096 and 8,192 on the logarithm is 5,792.6.
TEST(Recipe, OfMlperfBetweenTwoRowsIsInterpolatedAndSaysSo) {
  const OptionsOfRecipe run = Apply({"--recipe=mlperf", "--batch_size=181", "--accumulate=4"}, 8);
  EXPECT_NEAR(run.options.schedule.lr_init, 13.5, 1e-3);
  EXPECT_EQ(run.options.schedule.num_iter, 43);
  EXPECT_EQ(run.options.weight_decay, 2e-4);
  EXPECT_THAT(run.lines, Contains(HasSubstr("--lr_init=13.499 (interpolated between the rows of "
                                            "4096 and 8192)")));
  // Of 16 times as much and 8 times as little, the root of that.
  const Options options = Apply({"--recipe=mlperf", "--batch_size=10342"}, 1).options;
  EXPECT_NEAR(options.weight_decay, std::sqrt(2e-4 * 2.5e-5), 1e-7);
}

TEST(Recipe, OfNvidiaAndBedeIsSgdByTheLinearRule) {
  const Options options = Apply({"--recipe=nvidia", "--batch_size=256"}, 8).options;
  EXPECT_EQ(options.optimizer, OptimizerKind::kSgd);
  EXPECT_EQ(options.schedule.lr_schedule, RateDecay::kCosine);
  EXPECT_EQ(options.schedule.lr_scaling, RateScaling::kLinear);
  EXPECT_EQ(options.schedule.lr_init, 0.256);
  EXPECT_EQ(options.schedule.lr_warmup_epochs, 8);
  EXPECT_EQ(options.schedule.num_iter, 90);
  EXPECT_EQ(options.momentum, 0.875);
  EXPECT_EQ(options.weight_decay, 1.0 / 32768);
  EXPECT_EQ(options.label_smoothing, 0.1);
  EXPECT_EQ(options.eval_every, 0);
  const OptionsOfRecipe bede = Apply({"--recipe=bede", "--batch_size=256"}, 32);
  EXPECT_EQ(bede.options.schedule.num_iter, 50);
  EXPECT_THAT(bede.lines[0], HasSubstr("Bede's page on IBM WMLCE"));
}

TEST(Recipe, WhatIsGivenWinsAndIsSaid) {
  const OptionsOfRecipe run = Apply({"--momentum=0.8", "--recipe=mlperf", "--batch_size=128",
                                     "--use_cosine_lr", "--stop_at_top1=75", "--warmup_steps=7"},
                                    64);
  EXPECT_EQ(run.options.momentum, 0.8);
  EXPECT_EQ(run.options.schedule.lr_schedule, RateDecay::kCosine);
  EXPECT_EQ(run.options.stop_at_top1, 75);
  EXPECT_EQ(run.options.schedule.lr_init, 17);
  EXPECT_THAT(run.lines, Contains("recipe mlperf: --momentum=0.9, but --momentum is given"));
  EXPECT_THAT(run.lines,
              Contains("recipe mlperf: --lr_schedule=polynomial, but --use_cosine_lr is given"));
  EXPECT_THAT(run.lines, Not(Contains(HasSubstr("--lr_end"))));
}

TEST(Recipe, LeavesLengthAndTargetToRunsThatHaveOthers) {
  const OptionsOfRecipe benchmark =
      Apply({"--recipe=mlperf", "--batch_size=128", "--mode=training_benchmark",
             "--iter_unit=batch", "--num_iter=100"},
            64);
  EXPECT_EQ(benchmark.options.schedule.num_iter, 100);
  EXPECT_EQ(benchmark.options.eval_every, 0);
  EXPECT_EQ(benchmark.options.optimizer, OptimizerKind::kLars);
  const Options other = Apply({"--recipe=mlperf", "--batch_size=128", "--classes=200"}, 64).options;
  EXPECT_EQ(other.stop_at_top1, 0) << "the target is of ImageNet";
  EXPECT_EQ(other.schedule.num_iter, 44);
}

TEST(Recipe, IsRefusedWhereNothingIsPublished) {
  EXPECT_THAT(RecipeRefusal({"--recipe=mlperf", "--batch_size=256"}, 4),
              HasSubstr("--recipe=mlperf is published for 1632 to 65536 images in a step, not 1024 "
                        "(4 ranks x 256): give another --batch_size, --accumulate or number of "
                        "ranks, or leave --recipe out"));
  EXPECT_THAT(RecipeRefusal({"--recipe=mlperf", "--batch_size=65537"}, 1), HasSubstr("not 65537"));
  EXPECT_THAT(RecipeRefusal({"--recipe=nvidia", "--batch_size=256", "--accumulate=2"}, 8),
              HasSubstr("published for 256 to 2048 images in a step, not 4096 (8 ranks x 2 batches "
                        "x 256)"));
  EXPECT_THAT(RecipeRefusal({"--recipe=bede", "--batch_size=257"}, 32),
              HasSubstr("256 to 8192 images in a step, not 8224"));
  EXPECT_THAT(RecipeRefusal({"--recipe=bede", "--batch_size=255"}, 1), HasSubstr("(1 rank x 255)"));
}

}  // namespace
}  // namespace trainer
