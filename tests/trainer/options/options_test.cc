// SPDX-License-Identifier: Apache-2.0

#include "trainer/options/options.h"

#include "tests/support/test.h"
#include "tests/trainer/options/options_rejection.h"
#include "trainer/core/error.h"
#include "trainer/options/option_names.h"

namespace trainer {
namespace {

// The command line of NVIDIA's training/GENERIC.sh, abbreviation and all, with what IBM's copy
// passed.
TEST(Options, TakesNvidiasCommandLine) {
  const Options options =
      ParseOptions(
          WordsOf("--arch=resnet50 --mode=train_and_evaluate --iter_unit=epoch --num_iter=50 "
                  "--batch_size=256 --warmup_steps=100 --use_cosine --label_smoothing 0.1 "
                  "--lr_init=0.256 --lr_warmup_epochs=8 --momentum=0.875 "
                  "--weight_decay=3.0517578125e-05 --data_dir=/data --data_idx_dir=/idx "
                  "--results_dir=/results --weight_init=fan_in --precision=fp16 --loss_scale=1024 "
                  "--use_static_loss_scaling --use_xla --nouse_dali"))
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

TEST(Options, AbbreviationsOfNvidiasOptionsWinOverOurs) {
  // main.py has --data_dir, --data_idx_dir and --data_format; --data_threads is ours.
  EXPECT_EQ(ParseOptions({"--batch_size=1", "--data_i=/x"}).options.data_idx_dir, "/x");
  // Ours can be abbreviated, too, where nothing of NVIDIA's fits.
  EXPECT_EQ(ParseOptions({"--batch_size=1", "--image=64"}).options.image_size, 64);
}

TEST(Options, SaysWhatAnAbbreviationIsTakenFor) {
  const auto notes = [](const std::string& line) { return ParseOptions(WordsOf(line)).notes; };
  EXPECT_THAT(notes("--batch_size=1 --data_i=/x"),
              ElementsAre("--data_i is taken for --data_idx_dir"));
  EXPECT_THAT(notes("--batch-size=1 --lr=1 --data_idx_dir=/x"), IsEmpty());
  // No directory is called like a network.
  EXPECT_EQ(Rejection(WordsOf("--batch_size=1 --model_d=resnet152")),
            "ddltraind: '--model_d' abbreviates --model_dir, but 'resnet152' is a value "
            "of --arch: write the whole name of the option; ddltraind --help lists all options");
  EXPECT_THAT(Rejection(WordsOf("--batch_size=1 --model_d resnet50")),
              HasSubstr("is a value of --arch"));
  EXPECT_EQ(ParseOptions(WordsOf("--batch_size=1 --model_d=./resnet50")).options.model_dir,
            "./resnet50");
  EXPECT_EQ(ParseOptions(WordsOf("--batch_size=1 --model_dir=resnet50")).options.model_dir,
            "resnet50");
}

TEST(Options, TakesTheNamesOfOtherTrainers) {
  const Options options =
      ParseOptions(WordsOf("--batch-size=1 --model=resnet101 --lr 0.5 --sched=cosine --workers=3 "
                           "--epochs 90 --wd=0.001 --output-dir=out --data-path=/data "
                           "--grad-accum-steps=2 --print_freq=7 --checkpoint-hist=3 "
                           "--model-ema-decay=0.9 --dist-backend=mpi --hang-timeout=9"))
          .options;
  EXPECT_EQ(options.arch, "resnet101");
  EXPECT_EQ(options.schedule.lr_init, 0.5);
  EXPECT_EQ(options.schedule.lr_schedule, RateDecay::kCosine);
  EXPECT_EQ(options.data_threads, 3);
  EXPECT_EQ(options.schedule.num_iter, 90);
  EXPECT_EQ(options.schedule.iter_unit, IterationUnit::kEpoch);
  EXPECT_EQ(options.weight_decay, 0.001);
  EXPECT_EQ(options.results_dir, "out");
  EXPECT_EQ(options.data_dir, "/data");
  EXPECT_EQ(options.accumulate, 2);
  EXPECT_EQ(options.display_every, 7);
  EXPECT_EQ(options.keep_checkpoints, 3);
  EXPECT_EQ(options.ema, 0.9);
  EXPECT_EQ(options.comm, "mpi");
  EXPECT_EQ(options.hang_floor_seconds, 9);
  EXPECT_EQ(ParseOptions(WordsOf("--batch_size=1 --max-steps=5")).options.schedule.iter_unit,
            IterationUnit::kBatch);
  EXPECT_THAT(Rejection(WordsOf("--batch_size=1 --epochs=5 --iter_unit=batch")),
              HasSubstr("--epochs is --num_iter with --iter_unit=epoch, but another"));
  // Each is a name of ours, and none is one of ours.
  for (const OtherName& other : kOtherNames) {
    const auto has_name = [&](std::string_view name) {
      return std::ranges::any_of(OptionTable(),
                                 [&](const OptionRow& row) { return row.name == name; });
    };
    EXPECT_TRUE(has_name(other.option)) << other.name;
    EXPECT_FALSE(has_name(other.name)) << other.name;
  }
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

// Command lines that are refused, and parts of what is said in their order, with "..." between. Of
// values a|b each is tried, and <it> is that value.
TEST(Options, Rejects) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      // Spelling.
      {"--btach_size=1", "unknown option '--btach_size'; did you mean '--batch_size'?"},
      {"--zzzzzz", "'--zzzzzz'"},
      {"--lr_=0.1", "ambiguous option '--lr_': it could be --lr_init, --lr_warmup_epochs"},
      {"train", "unexpected argument 'train'"},
      {"\u2013\u2013epochs=3", "options are written --name=value; its dash is one of a text"},
      // Values that are missing.
      {"--mode=predict", "--to_predict=FILE"},
      {"--batch_size", "--batch_size"},
      {"--data_dir= --results_dir=run", "'--data_dir=' has no value"},
      {"--export_dir --results_dir=run",
       "--export_dir: has no value but the option '--results_dir=run'"},
      // Values out of range; no number is cut down to what fits.
      {"--batch_size=0|many", "--batch_size"},
      {"--mode=fly", "--mode...train_and_evaluate"},
      {"--precision=fp8", "--precision...tf32...bf16"},
      {"--graph=maybe", "--graph...auto, on, off"},
      {"--on_nan=restart", "--on_nan: needs one of stop, skip, rollback, not 'restart'"},
      {"--paranoid=-1", "--paranoid"},
      {"--replay_check=-1|x|0.5", "--replay_check: needs"},
      {"--replay_check", "--replay_check"},
      {"--checkpoint_in_background=maybe",
       "--checkpoint_in_background: needs one of on, off, not 'maybe'"},
      {"--keep_every=-1", "--keep_every"},
      {"--stop_margin=soon|-1|60s|inf|nan",
       "--stop_margin: needs auto, off or a number of seconds from 0, not '<it>'"},
      {"--label_smoothing=1.5", "--label_smoothing"},
      {"--image_size=8", "--image_size"},
      {"--run_iter=-2", "--run_iter"},
      {"--seed=-1", "--seed: needs a number from 0, not '-1'"},
      {"--seed=18446744073709551616",
       "--seed: needs a number of at most 18446744073709551615, not "},
      {"--seed=+18446744073709551616", "--seed: needs"},
      {"--num_iter=99999999999999999999", "--num_iter"},
      {"--batch_size=99999999999999999999", "--batch_size"},
      {"--threads=99999999999999999999", "--threads"},
      {"--run_iter=99999999999999999999", "--run_iter"},
      {"--log_filename=../../x|/tmp/x|logs/x|..",
       "--log_filename: needs the name of a file in --results_dir"},
      {"--lr_init=nan", "--lr_init"},
      {"--threads=100000", "--threads: needs a number from 0 to 1024, not '100000'"},
      {"--data_threads=1025", "from 0 to 1024"},
      {"--prefetch=1000000000", "--prefetch: needs a number from 1 to 1000, not '1000000000'"},
      {"--ema=0|1|-0.5|99|on", "--ema: needs a number above 0 and below 1 such as 0.9999"},
      {"--classes=1", "needs a number of 2 or more classes"},
      {"--accumulate=0|65537|-1", "a number from 1 to 65536, not"},
      {"--dry_run=long", "--dry_run: needs one of short, full, not 'long'"},
      {"--augmentation=pytorch",
       "--augmentation: needs one of tensorflow, dali, torchvision, not 'pytorch'"},
      {"--optimizer=lamb", "--optimizer: needs one of sgd, lars, not 'lamb'"},
      {"--lr_scaling=square", "--lr_scaling: needs one of linear, sqrt, none, not 'square'"},
      {"--lr_schedule=linear",
       "--lr_schedule: needs one of steps, cosine, polynomial, not 'linear'"},
      {"--recipe=facebook", "--recipe: needs one of none, bede, nvidia, mlperf, not 'facebook'"},
      {"--record_cache=/tmp --record_cache_gb=-1", "--record_cache_gb"},
      {"--eval_every=-1", "--eval_every"},
      {"--eval_every=2 --stop_at_top1=0.759|101|-1|nan",
       "--stop_at_top1: needs percent, 1 to 100 such as 75.9, or 0 for never"},
      {"--reduce_precision=8bit", "fp32, 16bit"},
      // Options that need another one, or exclude it.
      {"--mode=predict --to_predict=x.jpg --dry_run", "--dry_run"},
      {"--new_head", "--init_from, which is not given"},
      {"--ignore_mismatched_classes --mode=training_benchmark|inference_benchmark",
       "--ignore_mismatched_classes is about weights that were trained before: --mode=<it>"},
      {"--resume_from=5 --to_predict=x --mode=evaluate|predict|training_benchmark",
       "--resume_from is for training: --mode=<it> takes the weights of a checkpoint by "
       "--init_from"},
      {"--replay_check=10 --to_predict=x --mode=evaluate|predict|inference_benchmark",
       "--replay_check computes steps of a training twice: --mode=<it> has none"},
      {"--replay_check=1 --graph=on", "give a larger --replay_check, or --graph=auto"},
      {"--resume_from=5 --resume=never", "--resume=never wants none: leave out one of the two"},
      {"--resume_from=-1|x|5.5", "--resume_from"},
      {"--init_from=x --new_head --to_predict=x --mode=evaluate|predict|training_benchmark",
       "--new_head is for training: --mode=<it>"},
      {"--augmentation=dali --augment=none",
       "--augmentation says whose random crops a training takes, but --augment=none takes none: "
       "leave out one of the two"},
      {"--use_cosine_lr --lr_schedule=polynomial",
       "--use_cosine_lr is --lr_schedule=cosine, but --lr_schedule=polynomial is given: leave out "
       "one of the two"},
      {"--lr_end=0",
       "--lr_end is of --lr_schedule=polynomial, not steps: give that, or leave --lr_end out"},
      {"--lr_decay_steps=5 --use_cosine_lr",
       "--lr_decay_steps is of --lr_schedule=polynomial, not cosine"},
      {"--recipe=mlperf --mode=evaluate|inference_benchmark",
       "--recipe is for training: --mode=<it> learns nothing"},
      {"--record_cache_gb=5",
       "--record_cache_gb needs --record_cache, the directory that it limits"},
      {"--on_nan=rollback --checkpoint_every=0",
       "--on_nan=rollback needs a newest checkpoint, but --checkpoint_every=0 takes "
       "none: give so many steps, or --on_nan=stop"},
      {"--on_nan=rollback --mode=training_benchmark",
       "--on_nan=rollback needs a checkpoint, but --mode=training_benchmark writes none: "
       "give --on_nan=stop or skip"},
      {"--keep_every=2 --checkpoint_every=0",
       "--keep_every keeps some of the checkpoints of --checkpoint_every for ever, but "
       "--checkpoint_every=0 takes none"},
      {"--eval_every=2 --mode=train|evaluate|training_benchmark",
       "give --mode=train_and_evaluate, not <it>"},
      {"--stop_at_top1=75.9", "give --eval_every=N as well, in epochs"},
      {"--stop_at_top1=75.9 --iter_unit=batch", "give --eval_every=N as well, in steps"},
      {"--reduce_precision=16bit --precision=tf32",
       "--reduce_precision=16bit needs --precision=fp16 or bf16, not tf32"},
      {"--reduce_precision=16bit --precision=fp16 --comm=mpi", "needs NCCL: leave out --comm=mpi"},
      {"--accumulate=2 --precision=fp16 --reduce_precision=16bit",
       "--reduce_precision=16bit cannot take what --accumulate adds up, which is in fp32: leave "
       "out one of the two"},
  };
  for (const auto& [line, said] : rows) ExpectRejected(line, said);
  EXPECT_THAT(Rejection({}), HasSubstr("--batch_size is required"));
  EXPECT_THAT(Rejection({"--batch_size=1", "--zzzzzz"}), Not(HasSubstr("did you mean")));
  EXPECT_THAT(Rejection({"--batch_size=8", "--data_dir", "", "--results_dir=run"}),
              HasSubstr("--data_dir: has no value: is a variable"));
  EXPECT_EQ(Rejection({"--batch_size=1", "--use_dali", "--augment=none"}), "accepted");
}

Options Taken(std::vector<std::string> arguments) {
  arguments.emplace(arguments.begin(), "--batch_size=8");
  return ParseOptions(arguments).options;
}

TEST(Options, TakesTheValuesBesideThose) {
  EXPECT_EQ(Taken({"--batch-size=7"}).batch_size, 7) << "dashes inside names are underscores";
  EXPECT_EQ(Taken({"--batch_size=064"}).batch_size, 64) << "numbers are decimal";
  EXPECT_EQ(Taken({"--seed", "08"}).seed, 8U);
  EXPECT_EQ(Taken({"--seed=18446744073709551615"}).seed, 18446744073709551615U);
  EXPECT_EQ(Taken({}).ema, 0);
  EXPECT_EQ(Taken({"--ema=0.9999"}).ema, 0.9999);
  EXPECT_EQ(Taken({"--classes=2"}).classes, 2);
  EXPECT_TRUE(Taken({"--init_from=x", "--new_head"}).new_head);
  EXPECT_TRUE(Taken({"--ignore_mismatched_classes"}).ignore_mismatched_classes);
  EXPECT_EQ(Taken({"--record_cache=/tmp", "--record_cache_gb=0.5"}).record_cache_gb, 0.5);
  EXPECT_EQ(Taken({"--keep_every=2"}).keep_every, 2);
  EXPECT_EQ(Taken({"--eval_every=2", "--stop_at_top1=75.9"}).eval_every, 2);
  EXPECT_EQ(Taken({"--eval_every=2", "--stop_at_top1=75.9"}).stop_at_top1, 75.9);
  EXPECT_EQ(Taken({}).accumulate, 1);
  EXPECT_EQ(Taken({"--accumulate=4"}).accumulate, 4);
}

TEST(Options, ADryRunIsShortUnlessItIsToBeFull) {
  const auto dry_run = [](const std::vector<std::string>& arguments) {
    return Taken(arguments).dry_run;
  };
  EXPECT_EQ(dry_run({}), "");
  EXPECT_EQ(dry_run({"--dry_run"}), "short");
  EXPECT_EQ(dry_run({"--dry_run=short"}), "short");
  EXPECT_EQ(dry_run({"--dry_run=full"}), "full");
  EXPECT_EQ(dry_run({"--dry"}), "short");
}

TEST(Options, TakesTheLastOfAnOptionGivenTwice) {
  const Options options =
      ParseOptions({"--batch_size=8", "--use_cosine_lr", "--batch_size=16", "--nouse_cosine_lr"})
          .options;
  EXPECT_EQ(options.batch_size, 16);
  EXPECT_EQ(options.schedule.lr_schedule, RateDecay::kSteps);
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

Augmentation AugmentationOf(const std::vector<std::string>& arguments) {
  return Taken(arguments).augmentation;
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
              Contains(ConsistencyItem{"--augmentation", "--augmentation=dali"}));
}

RateDecay DecayOf(const std::vector<std::string>& arguments) {
  return Taken(arguments).schedule.lr_schedule;
}

TEST(Options, UseCosineLrIsItsScheduleUnlessAnotherIsGiven) {
  EXPECT_EQ(DecayOf({}), RateDecay::kSteps);
  EXPECT_EQ(DecayOf({"--use_cosine_lr"}), RateDecay::kCosine);
  EXPECT_EQ(DecayOf({"--cosine_lr"}), RateDecay::kCosine);
  EXPECT_EQ(DecayOf({"--use_cosine_lr", "--nouse_cosine_lr"}), RateDecay::kSteps);
  EXPECT_EQ(DecayOf({"--lr_schedule=cosine", "--nouse_cosine_lr"}), RateDecay::kCosine);
  EXPECT_EQ(DecayOf({"--lr_schedule=polynomial", "--lr_end=0.1"}), RateDecay::kPolynomial);
}

}  // namespace
}  // namespace trainer
