// SPDX-License-Identifier: Apache-2.0
//
// Options that need another one, exclude it, or say it in other words.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trainer/options/options_refusal.h"
#include "trainer/options/options.h"

namespace trainer {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Augmentation AugmentationOf(std::vector<std::string> arguments) {
  arguments.emplace_back("--batch_size=1");
  return ParseOptions(arguments).options.augmentation;
}

TEST(Options, UseDaliIsItsAugmentationUnlessAnotherIsGiven) {
  EXPECT_EQ(AugmentationOf({}), Augmentation::kTensorFlow);
  EXPECT_EQ(AugmentationOf({"--augmentation=tensorflow"}), Augmentation::kTensorFlow);
  EXPECT_EQ(AugmentationOf({"--augmentation=dali"}), Augmentation::kDali);
  EXPECT_EQ(AugmentationOf({"--augmentation=torchvision"}), Augmentation::kTorchvision);
  EXPECT_EQ(AugmentationOf({"--use_dali"}), Augmentation::kDali);
  EXPECT_EQ(AugmentationOf({"--dali"}), Augmentation::kDali);
  EXPECT_EQ(AugmentationOf({"--use_dali", "--nouse_dali"}), Augmentation::kTensorFlow);
  EXPECT_EQ(AugmentationOf({"--use_dali", "--augmentation=tensorflow"}), Augmentation::kTensorFlow);
  EXPECT_EQ(AugmentationOf({"--augmentation=torchvision", "--nouse_dali"}),
            Augmentation::kTorchvision);
}

// It has an effect: nothing is said of it, and ranks are held to what it means.
TEST(Options, UseDaliIsNoLongerWithoutEffect) {
  const ParsedOptions parsed = ParseOptions({"--batch_size=1", "--use_dali"});
  EXPECT_THAT(parsed.notes, IsEmpty());
  EXPECT_THAT(SharedOptions(parsed.options),
              Contains(Fact{"--augmentation", "--augmentation=dali"}));
}

TEST(Options, RefusesAnAugmentationThatIsNone) {
  EXPECT_THAT(Refusal({"--batch_size=1", "--augmentation=pytorch"}),
              HasSubstr("--augmentation: needs one of tensorflow, dali, torchvision, not "
                        "'pytorch'"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--augmentation=dali", "--augment=none"}),
              HasSubstr("--augmentation says whose random crops a training takes, but "
                        "--augment=none takes none: leave out one of the two"));
  EXPECT_EQ(Refusal({"--batch_size=1", "--use_dali", "--augment=none"}), "accepted");
}

RateDecay DecayOf(std::vector<std::string> arguments) {
  arguments.emplace_back("--batch_size=1");
  return ParseOptions(arguments).options.schedule.lr_schedule;
}

TEST(Options, UseCosineLrIsItsScheduleUnlessAnotherIsGiven) {
  EXPECT_EQ(DecayOf({}), RateDecay::kSteps);
  EXPECT_EQ(DecayOf({"--use_cosine_lr"}), RateDecay::kCosine);
  EXPECT_EQ(DecayOf({"--cosine_lr"}), RateDecay::kCosine);
  EXPECT_EQ(DecayOf({"--use_cosine_lr", "--nouse_cosine_lr"}), RateDecay::kSteps);
  EXPECT_EQ(DecayOf({"--lr_schedule=cosine", "--nouse_cosine_lr"}), RateDecay::kCosine);
  EXPECT_EQ(DecayOf({"--lr_schedule=polynomial", "--lr_end=0.1"}), RateDecay::kPolynomial);
  EXPECT_THAT(Refusal({"--batch_size=1", "--use_cosine_lr", "--lr_schedule=polynomial"}),
              HasSubstr("--use_cosine_lr is --lr_schedule=cosine, but --lr_schedule=polynomial is "
                        "given: leave out one of the two"));
}

TEST(Options, RefusesWhatIsOfAnotherScheduleOrOptimizer) {
  EXPECT_THAT(Refusal({"--batch_size=1", "--lr_end=0"}),
              HasSubstr("--lr_end is of --lr_schedule=polynomial, not steps: give that, or leave "
                        "--lr_end out"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--lr_decay_steps=5", "--use_cosine_lr"}),
              HasSubstr("--lr_decay_steps is of --lr_schedule=polynomial, not cosine"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--optimizer=lamb"}),
              HasSubstr("--optimizer: needs one of sgd, lars, not 'lamb'"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--lr_scaling=square"}),
              HasSubstr("--lr_scaling: needs one of linear, sqrt, none, not 'square'"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--lr_schedule=linear"}),
              HasSubstr("--lr_schedule: needs one of steps, cosine, polynomial, not 'linear'"));
}

TEST(Options, RefusesARecipeForWhatLearnsNothing) {
  EXPECT_THAT(Refusal({"--batch_size=1", "--recipe=facebook"}),
              HasSubstr("--recipe: needs one of none, bede, nvidia, mlperf, not 'facebook'"));
  for (const std::string mode : {"evaluate", "inference_benchmark"}) {
    EXPECT_THAT(Refusal({"--batch_size=1", "--recipe=mlperf", "--mode=" + mode}),
                HasSubstr("--recipe is for training: --mode=" + mode + " learns nothing"));
  }
}

TEST(Options, RefusesALimitOfARecordCacheThatIsNone) {
  EXPECT_THAT(Refusal({"--batch_size=1", "--record_cache_gb=5"}),
              HasSubstr("--record_cache_gb needs --record_cache, the folder that it limits"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--record_cache=/tmp", "--record_cache_gb=-1"}),
              HasSubstr("--record_cache_gb"));
  EXPECT_EQ(ParseOptions({"--batch_size=1", "--record_cache=/tmp", "--record_cache_gb=0.5"})
                .options.record_cache_gb,
            0.5);
}

TEST(Options, RefusesToKeepSomeOfNoCheckpoints) {
  EXPECT_THAT(Refusal({"--batch_size=1", "--on_nan=rollback", "--checkpoint_every=0"}),
              HasSubstr("--on_nan=rollback goes back to the newest checkpoint, but "
                        "--checkpoint_every=0 takes none: give so many steps, or --on_nan=stop"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--on_nan=rollback", "--mode=training_benchmark"}),
              HasSubstr("--on_nan=rollback goes back to a checkpoint, but "
                        "--mode=training_benchmark writes none: give --on_nan=stop or skip"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--keep_every=2", "--checkpoint_every=0"}),
              HasSubstr("--keep_every keeps some of the checkpoints of --checkpoint_every for "
                        "ever, but --checkpoint_every=0 takes none"));
  EXPECT_EQ(ParseOptions({"--batch_size=1", "--keep_every=2"}).options.keep_every, 2);
}

TEST(Options, RefusesEvaluationsWithoutATrainingThatHasThem) {
  for (const std::string mode : {"train", "evaluate", "training_benchmark"}) {
    EXPECT_THAT(Refusal({"--batch_size=1", "--eval_every=2", "--mode=" + mode}),
                HasSubstr("give --mode=train_and_evaluate, not " + mode));
  }
  EXPECT_THAT(Refusal({"--batch_size=1", "--eval_every=-1"}), HasSubstr("--eval_every"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--stop_at_top1=75.9"}),
              HasSubstr("give --eval_every=N as well, in epochs"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--stop_at_top1=75.9", "--iter_unit=batch"}),
              HasSubstr("give --eval_every=N as well, in steps"));
  for (const std::string percent : {"0.759", "101", "-1", "nan"}) {
    EXPECT_THAT(Refusal({"--batch_size=1", "--eval_every=2", "--stop_at_top1", percent}),
                HasSubstr("--stop_at_top1: needs percent, 1 to 100 such as 75.9, or 0 for never"));
  }
  const Options options =
      ParseOptions({"--batch_size=1", "--eval_every=2", "--stop_at_top1=75.9"}).options;
  EXPECT_EQ(options.eval_every, 2);
  EXPECT_EQ(options.stop_at_top1, 75.9);
}

TEST(Options, RefusesToReduceIn16BitsWithoutThem) {
  EXPECT_THAT(Refusal({"--batch_size=1", "--reduce_precision=16bit", "--precision=tf32"}),
              HasSubstr("--reduce_precision=16bit needs --precision=fp16 or bf16, not tf32"));
  EXPECT_THAT(
      Refusal({"--batch_size=1", "--reduce_precision=16bit", "--precision=fp16", "--comm=mpi"}),
      HasSubstr("needs NCCL: leave out --comm=mpi"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--reduce_precision=8bit"}), HasSubstr("fp32, 16bit"));
}

TEST(Options, RefusesBatchesThatCannotBeAddedUp) {
  EXPECT_EQ(ParseOptions({"--batch_size=8"}).options.accumulate, 1);
  EXPECT_EQ(ParseOptions({"--batch_size=8", "--accumulate=4"}).options.accumulate, 4);
  for (const char* wrong : {"--accumulate=0", "--accumulate=65537", "--accumulate=-1"}) {
    EXPECT_THAT(Refusal({"--batch_size=8", wrong}), HasSubstr("a number from 1 to 65536, not"));
  }
  EXPECT_THAT(
      Refusal({"--batch_size=8", "--accumulate=2", "--precision=fp16", "--reduce_precision=16bit"}),
      HasSubstr("--reduce_precision=16bit cannot take what --accumulate adds up, which is "
                "in fp32: leave out one of the two"));
}

}  // namespace
}  // namespace trainer
