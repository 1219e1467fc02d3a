// SPDX-License-Identifier: Apache-2.0

#include "trainer/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/trainer/options/options_refusal.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The command line of NVIDIA's training/GENERIC.sh, abbreviation and all, with what IBM's copy
// passed.
TEST(Options, TakesNvidiasCommandLine) {
  const Options options = ParseOptions({"--arch=resnet50",
                                        "--mode=train_and_evaluate",
                                        "--iter_unit=epoch",
                                        "--num_iter=50",
                                        "--batch_size=256",
                                        "--warmup_steps=100",
                                        "--use_cosine",
                                        "--label_smoothing",
                                        "0.1",
                                        "--lr_init=0.256",
                                        "--lr_warmup_epochs=8",
                                        "--momentum=0.875",
                                        "--weight_decay=3.0517578125e-05",
                                        "--data_dir=/data",
                                        "--data_idx_dir=/idx",
                                        "--results_dir=/results",
                                        "--weight_init=fan_in",
                                        "--precision=fp16",
                                        "--loss_scale=1024",
                                        "--use_static_loss_scaling",
                                        "--use_xla",
                                        "--nouse_dali"})
                              .options;
  EXPECT_EQ(options.batch_size, 256);
  EXPECT_EQ(options.schedule.num_iter, 50);
  EXPECT_EQ(options.schedule.lr_schedule, RateDecay::kCosine);
  EXPECT_DOUBLE_EQ(options.label_smoothing, 0.1);
  EXPECT_DOUBLE_EQ(options.weight_decay, 3.0517578125e-05);
  EXPECT_EQ(options.weight_init, WeightInit::kFanIn);
  EXPECT_TRUE(options.use_static_loss_scaling);
  EXPECT_EQ(options.augmentation, Augmentation::kTensorFlow);
  EXPECT_EQ(options.results_dir, "/results");
}

TEST(Options, DefaultsAreNvidias) {
  const Options options = ParseOptions({"--batch_size=1"}).options;
  EXPECT_EQ(options.mode, RunMode::kTrainAndEvaluate);
  EXPECT_EQ(options.schedule.iter_unit, IterationUnit::kEpoch);
  EXPECT_EQ(options.schedule.num_iter, 1);
  EXPECT_EQ(options.schedule.run_iter, -1);
  EXPECT_EQ(options.warmup_steps, 50);
  EXPECT_DOUBLE_EQ(options.schedule.lr_init, 0.1);
  EXPECT_EQ(options.schedule.lr_warmup_epochs, 5);
  EXPECT_DOUBLE_EQ(options.weight_decay, 1e-4);
  EXPECT_EQ(options.weight_init, WeightInit::kFanOut);
  EXPECT_DOUBLE_EQ(options.loss_scale, 256);
  EXPECT_EQ(options.log_filename, "log.json");
}

TEST(Options, DashesInsideNamesAreUnderscores) {
  EXPECT_EQ(ParseOptions({"--batch-size=7"}).options.batch_size, 7);
}

TEST(Options, AbbreviationsOfNvidiasOptionsWinOverOurs) {
  // main.py has --data_dir, --data_idx_dir and --data_format; --data_threads is ours.
  EXPECT_EQ(ParseOptions({"--batch_size=1", "--data_i=/x"}).options.data_idx_dir, "/x");
  // Ours can be abbreviated, too, where nothing of NVIDIA's fits.
  EXPECT_EQ(ParseOptions({"--batch_size=1", "--image=64"}).options.image_size, 64);
}

TEST(Options, SaysWhatAnOptionWithoutEffectDoes) {
  const ParsedOptions parsed =
      ParseOptions({"--batch_size=1", "--use_xla", "--gpu_memory_fraction=0.9"});
  ASSERT_EQ(parsed.notes.size(), 2U);
  EXPECT_THAT(parsed.notes[0], HasSubstr("--use_xla has no effect here: "));
  EXPECT_TRUE(ParseOptions({"--batch_size=1"}).notes.empty());
  for (const char* mode : {"predict", "training_benchmark", "inference_benchmark"}) {
    const std::string given = std::string("--mode=") + mode;
    EXPECT_THAT(ParseOptions({"--batch_size=1", given, "--to_predict=x", "--export_dir=x"}).notes,
                ElementsAre("--export_dir has no effect here: " + given + " writes no weights"));
  }
  for (const char* mode : {"train", "train_and_evaluate", "evaluate"}) {
    const std::string given = std::string("--mode=") + mode;
    EXPECT_TRUE(ParseOptions({"--batch_size=1", given, "--export_dir=x"}).notes.empty());
  }
}

TEST(Options, ANewHeadIsForTrainingFromAFile) {
  EXPECT_TRUE(ParseOptions({"--batch_size=8", "--init_from=x", "--new_head"}).options.new_head);
  EXPECT_THAT(Refusal({"--batch_size=8", "--new_head"}),
              HasSubstr("--init_from, which is not given"));
  for (const char* mode : {"evaluate", "predict", "training_benchmark"}) {
    const std::string given = std::string("--mode=") + mode;
    EXPECT_THAT(Refusal({"--batch_size=8", "--init_from=x", "--new_head", "--to_predict=x", given}),
                HasSubstr("--new_head is for training: " + given));
  }
}

TEST(Options, RefusesAnUnknownOptionWithTheNearestSpelling) {
  EXPECT_THAT(Refusal({"--btach_size=1"}),
              HasSubstr("unknown option '--btach_size'; did you mean '--batch_size'?"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--zzzzzz"}),
              AllOf(HasSubstr("'--zzzzzz'"), Not(HasSubstr("did you mean"))));
}

TEST(Options, RefusesAnAmbiguousAbbreviation) {
  EXPECT_THAT(Refusal({"--batch_size=1", "--lr=0.1"}),
              HasSubstr("ambiguous option '--lr': it could be --lr_init, --lr_warmup_epochs"));
}

TEST(Options, RefusesValuesOutOfRange) {
  EXPECT_THAT(Refusal({"--batch_size=0"}), HasSubstr("--batch_size"));
  EXPECT_THAT(Refusal({"--batch_size=many"}), HasSubstr("--batch_size"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--mode=fly"}),
              AllOf(HasSubstr("--mode"), HasSubstr("train_and_evaluate")));
  EXPECT_THAT(Refusal({"--batch_size=1", "--precision=fp8"}),
              AllOf(HasSubstr("--precision"), HasSubstr("tf32"), HasSubstr("bf16")));
  EXPECT_THAT(Refusal({"--batch_size=1", "--graph=maybe"}),
              AllOf(HasSubstr("--graph"), HasSubstr("auto, on, off")));
  EXPECT_THAT(Refusal({"--batch_size=1", "--on_nan=restart"}),
              HasSubstr("--on_nan: needs one of stop, skip, rollback, not 'restart'"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--paranoid=-1"}), HasSubstr("--paranoid"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--checkpoint_in_background=maybe"}),
              HasSubstr("--checkpoint_in_background: needs one of on, off, not 'maybe'"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--keep_every=-1"}), HasSubstr("--keep_every"));
  for (const std::string text : {"soon", "-1", "60s", "inf", "nan"}) {
    EXPECT_THAT(Refusal({"--batch_size=1", "--stop_margin", text}),
                HasSubstr("--stop_margin: needs auto, off or a number of seconds from 0, not '" +
                          text + "'"));
  }
  EXPECT_THAT(Refusal({"--batch_size=1", "--label_smoothing=1.5"}), HasSubstr("--label_smoothing"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--image_size=8"}), HasSubstr("--image_size"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--run_iter=-2"}), HasSubstr("--run_iter"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--seed=-1"}),
              HasSubstr("--seed: needs a number from 0, not '-1'"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--seed=18446744073709551616"}),
              HasSubstr("--seed: needs a number of at most 18446744073709551615, not "));
  EXPECT_EQ(ParseOptions({"--batch_size=1", "--seed=18446744073709551615"}).options.seed,
            18446744073709551615U);
  for (const char* name : {"../../x", "/tmp/x", "logs/x", ".."}) {
    EXPECT_THAT(Refusal({"--batch_size=1", "--log_filename", name}),
                HasSubstr("--log_filename: needs the name of a file in --results_dir"));
  }
  // Nor is any other number cut down to what fits.
  EXPECT_THAT(Refusal({"--batch_size=1", "--seed=+18446744073709551616"}),
              HasSubstr("--seed: needs"));
  for (const char* name : {"--num_iter", "--batch_size", "--threads", "--run_iter"}) {
    EXPECT_THAT(Refusal({"--batch_size=1", name, "99999999999999999999"}), HasSubstr(name));
  }
  EXPECT_THAT(Refusal({"--batch_size=1", "--lr_init=nan"}), HasSubstr("--lr_init"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--threads=100000"}),
              HasSubstr("--threads: needs a number from 0 to 1024, not '100000'"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--data_threads=1025"}), HasSubstr("from 0 to 1024"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--prefetch=1000000000"}),
              HasSubstr("--prefetch: needs a number from 1 to 1000, not '1000000000'"));
}

TEST(Options, TakesADecayBetweenZeroAndOne) {
  EXPECT_EQ(ParseOptions({"--batch_size=8"}).options.ema, 0);
  EXPECT_EQ(ParseOptions({"--batch_size=8", "--ema=0.9999"}).options.ema, 0.9999);
  for (const char* wrong : {"--ema=0", "--ema=1", "--ema=-0.5", "--ema=99", "--ema=on"}) {
    EXPECT_THAT(Refusal({"--batch_size=8", wrong}),
                HasSubstr("--ema: needs a number above 0 and below 1 such as 0.9999"));
  }
}

TEST(Options, RefusesWhatIsMissing) {
  EXPECT_THAT(Refusal({}), HasSubstr("--batch_size is required"));
  EXPECT_THAT(Refusal({"--mode=predict"}), HasSubstr("--to_predict=FILE"));
  EXPECT_THAT(Refusal({"--batch_size"}), HasSubstr("--batch_size"));
}

TEST(Options, RefusesADryRunOfAPrediction) {
  EXPECT_THAT(Refusal({"--mode=predict", "--to_predict=x.jpg", "--dry_run"}),
              HasSubstr("--dry_run"));
}

TEST(Options, ADryRunIsShortUnlessItIsToBeFull) {
  const auto dry_run = [](std::vector<std::string> arguments) {
    arguments.emplace_back("--batch_size=8");
    return ParseOptions(arguments).options.dry_run;
  };
  EXPECT_EQ(dry_run({}), "");
  EXPECT_EQ(dry_run({"--dry_run"}), "short");
  EXPECT_EQ(dry_run({"--dry_run=short"}), "short");
  EXPECT_EQ(dry_run({"--dry_run=full"}), "full");
  EXPECT_EQ(dry_run({"--dry"}), "short");
  EXPECT_THAT(Refusal({"--batch_size=8", "--dry_run=long"}),
              HasSubstr("--dry_run: needs one of short, full, not 'long'"));
}

TEST(Options, TakesTheLastOfAnOptionGivenTwice) {
  const Options options =
      ParseOptions({"--batch_size=8", "--use_cosine_lr", "--batch_size=16", "--nouse_cosine_lr"})
          .options;
  EXPECT_EQ(options.batch_size, 16);
  EXPECT_EQ(options.schedule.lr_schedule, RateDecay::kSteps);
}

TEST(Options, RefusesAnOptionWhoseValueIsEmpty) {
  EXPECT_THAT(Refusal({"--batch_size=8", "--data_dir=", "--results_dir=run"}),
              HasSubstr("'--data_dir=' has no value"));
  EXPECT_THAT(Refusal({"--batch_size=8", "--data_dir", "", "--results_dir=run"}),
              HasSubstr("--data_dir: has no value: is a variable"));
  EXPECT_THAT(Refusal({"--batch_size=8", "--export_dir", "--results_dir=run"}),
              HasSubstr("--export_dir: has no value but the option '--results_dir=run'"));
}

TEST(Options, ReadsNumbersAsDecimal) {
  EXPECT_EQ(ParseOptions({"--batch_size=064"}).options.batch_size, 64);
  EXPECT_EQ(ParseOptions({"--batch_size=8", "--seed", "08"}).options.seed, 8U);
}

TEST(Options, RefusesAClassAlone) {
  EXPECT_EQ(ParseOptions({"--batch_size=8", "--classes=2"}).options.classes, 2);
  EXPECT_THAT(Refusal({"--batch_size=8", "--classes=1"}), HasSubstr("needs a number from 2"));
}

TEST(Options, RefusesAnArgumentThatIsNoOption) {
  EXPECT_THAT(Refusal({"--batch_size=1", "train"}), HasSubstr("unexpected argument 'train'"));
}

TEST(Options, HelpNamesEveryOption) {
  const std::string help = ParseOptions({"--help"}).answer;
  std::set<std::string> names;
  for (const OptionRow& row : OptionTable()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " is in the table twice";
    EXPECT_THAT(help, HasSubstr("--" + row.name));
    EXPECT_FALSE(row.help.empty());
  }
  EXPECT_EQ(ParseOptions({"-h"}).answer, help);
}

// Options that need another one, exclude it, or say it in other words.

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
