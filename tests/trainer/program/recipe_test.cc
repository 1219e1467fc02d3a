// SPDX-License-Identifier: Apache-2.0

#include "trainer/program/recipe.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/core/error.h"
#include "trainer/program/data_loaders.h"
#include "trainer/program/launch_environment.h"
#include "trainer/program/setup.h"
#include "trainer/train/evaluation/evaluate.h"

namespace trainer {
namespace {

const std::vector<ImageClass> kClasses = {
    {"n01440764", "tench, Tinca tinca"}, {"n01443537", ""}, {"", ""}};

ImagePrediction Image(const std::string& file) {
  return {file, {{1, 0.5}, {0, 0.25}, {2, 0.125}, {3, 0.125}}, ""};
}

TEST(PredictionText, HasNamesWhereTheyAreKnown) {
  const std::vector<ImagePrediction> one = {Image("a.jpg")};
  EXPECT_EQ(FormatPredictions(one, kClasses),
            "class 1 probability 0.5 n01443537\n"
            "class 0 probability 0.25 n01440764 tench, Tinca tinca\n"
            "class 2 probability 0.125\n"
            "class 3 probability 0.125\n");
  EXPECT_EQ(FormatPredictions(one, {}).substr(0, 26), "class 1 probability 0.5\ncl");
}

TEST(PredictionText, ANameIsOneLine) {
  const std::vector<ImagePrediction> images = {{"a\nb\x1b[2J\x7f c.jpg", {}, "is no image"},
                                               {"ä.jpg", {}, "is none"}};
  EXPECT_EQ(FormatPredictions(images, {}),
            "a\\nb\\x1b[2J\\x7f c.jpg: is no image\nä.jpg: is none\n");
}

TEST(PredictionText, OfSeveralImagesHasTheirFiles) {
  const std::vector<ImagePrediction> images = {
      {"a.jpg", {{1, 1}}, ""}, {"b.gif", {}, "the image is GIF"}, {"c", {{0, 1}}, ""}};
  EXPECT_EQ(FormatPredictions(images, {}),
            "a.jpg:\nclass 1 probability 1\n"
            "b.gif: the image is GIF\n"
            "c:\nclass 0 probability 1\n");
}

TEST(PredictionText, AsJsonIsOneObjectInALine) {
  const std::vector<ImagePrediction> images = {Image("it's \"a\"\n.jpg"),
                                               {"b\xff.gif", {}, "the image is GIF"}};
  const std::string text = FormatPredictionsAsJson(images, kClasses);
  ASSERT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  const auto first = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(first["file"], "it's \"a\"\n.jpg");
  ASSERT_EQ(first["classes"].size(), 4U);
  EXPECT_EQ(
      first["classes"][0],
      (nlohmann::json{{"class", 1}, {"label", 2}, {"name", "n01443537"}, {"probability", 0.5}}));
  EXPECT_EQ(first["classes"][1]["text"], "tench, Tinca tinca");
  EXPECT_FALSE(first["classes"][2].contains("name"));
  const auto second = nlohmann::json::parse(text.substr(text.find('\n') + 1));
  EXPECT_EQ(second["error"], "the image is GIF");
  EXPECT_EQ(second["file"], "b\xef\xbf\xbd.gif");
  EXPECT_FALSE(second.contains("classes"));
}

EnvironmentLookup LookupIn(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(ReadRank, RejectsWhatContradictsItself) {
  EXPECT_EQ(ReadRank(LookupIn({})).world_size, 1);
  EXPECT_THAT(tests::Rejection<Error>(EX_CONFIG,
                                      [&] {
                                        ReadRank(LookupIn({{"RANK", "2"}, {"WORLD_SIZE", "2"}}));
                                      }),
              HasSubstr("RANK=2"));
}

TEST(StartedTasks, AreThoseOfMpirunOrOfTheStep) {
  EXPECT_EQ(StartedTasks(LookupIn({})), 0);
  EXPECT_EQ(StartedTasks(LookupIn({{"OMPI_COMM_WORLD_SIZE", "4"}})), 4);
  EXPECT_EQ(StartedTasks(LookupIn({{"SLURM_STEP_NUM_TASKS", "8"}})), 8);
  for (const char* inner : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    EXPECT_EQ(StartedTasks(LookupIn({{inner, "4"}, {"SLURM_STEP_NUM_TASKS", "8"}})), 4) << inner;
  }
  // mpirun whose daemons srun has started with its PMI-2, one on each of two nodes.
  EXPECT_EQ(StartedTasks(LookupIn({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMI_SIZE", "2"}})), 4);
}

TEST(MakeCommOptions, LeavesOutHanUnlessTheUserAsksForComponents) {
  const auto leaves_out = [](std::map<std::string, std::string> variables) {
    return MakeCommOptions({}, LookupIn(std::move(variables)), nullptr).leaves_out_han;
  };
  EXPECT_TRUE(leaves_out({}));
  EXPECT_TRUE(leaves_out({{"OMPI_MCA_coll_tuned_priority", "40"}}));
  EXPECT_FALSE(leaves_out({{"OMPI_MCA_coll_han_priority", "35"}}));
  EXPECT_FALSE(leaves_out({{"OMPI_MCA_coll", "han,tuned,basic,libnbc"}}));
}

TEST(CpusOfRank, ArePartedWhereNobodyHasBoundTheRank) {
  const struct {
    int usable, online, ranks, cpus;
  } kCases[] = {{8, 8, 1, 8}, {8, 8, 2, 4},   {8, 8, 3, 2}, {8, 8, 9, 1},
                {7, 8, 2, 7}, {1, 64, 64, 1}, {9, 8, 2, 4}, {8, 8, 0, 8}};
  for (const auto& each : kCases) {
    EXPECT_EQ(CpusOfRank(each.usable, each.online, each.ranks), each.cpus)
        << each.usable << " of " << each.online << ", " << each.ranks << " ranks";
  }
}

TEST(SliceOfGpu, IsTheOneThatCudaShows) {
  const auto of = [](const std::string& visible) {
    return SliceOfGpu(LookupIn({{"CUDA_VISIBLE_DEVICES", visible}}));
  };
  EXPECT_EQ(of("MIG-4a2b,MIG-77c1"), "MIG-4a2b");
  EXPECT_EQ(of("MIG-GPU-8e6f/1/0"), "MIG-GPU-8e6f/1/0");
  for (const char* whole : {"", "0,1", "GPU-8e6f", "0,MIG-4a2b"}) EXPECT_EQ(of(whole), "") << whole;
  EXPECT_EQ(SliceOfGpu(LookupIn({})), "");
}

OptionsOfRecipe Apply(std::vector<std::string> arguments, int ranks) {
  return ApplyRecipe(ParseOptions(arguments), arguments, ranks);
}

std::string RecipeRejection(const std::vector<std::string>& arguments, int ranks) {
  return tests::Rejection<Error>(
      EX_USAGE, [&] { Apply(arguments, ranks); }, "not refused");
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
  for (const int batch : {1632, 3264, 4096, 8192, 13056, 32768, 49152, 58880, 65536, 67840}) {
    const Options row =
        Apply({"--recipe=mlperf", "--batch_size=" + std::to_string(batch / 8)}, 8).options;
    EXPECT_GE(row.schedule.num_iter, end);
    end = row.schedule.num_iter;
  }
  EXPECT_EQ(end, 91);
}

TEST(Recipe, OfMlperfHasTheRowsOfNvidia) {
  const struct {
    int batch;
    double rate;
    double warmup;
    std::int64_t epochs;
  } rows[] = {{49152, 19.405, 24, 71}, {58880, 23.246, 29, 82}, {67840, 24.699, 31, 91}};
  for (const auto& row : rows) {
    const Options options =
        Apply({"--recipe=mlperf", "--batch_size=" + std::to_string(row.batch / 8)}, 8).options;
    EXPECT_EQ(options.schedule.lr_init, row.rate);
    EXPECT_EQ(options.schedule.lr_warmup_epochs, row.warmup);
    EXPECT_EQ(options.schedule.num_iter, row.epochs);
    EXPECT_EQ(options.momentum, 0.951807);
    EXPECT_EQ(options.weight_decay, 1e-4);
  }
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
  EXPECT_EQ(options.weight_init, WeightInit::kFanIn);
  const OptionsOfRecipe bede = Apply({"--recipe=bede", "--batch_size=256"}, 32);
  EXPECT_EQ(bede.options.schedule.num_iter, 50);
  EXPECT_EQ(bede.options.weight_init, WeightInit::kFanOut);
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

TEST(Recipe, IsRejectedWhereNothingIsPublished) {
  EXPECT_THAT(RecipeRejection({"--recipe=mlperf", "--batch_size=256"}, 4),
              HasSubstr("--recipe=mlperf is published for 1632 to 67840 images in a step, not 1024 "
                        "(4 ranks x 256): give another --batch_size, --accumulate or number of "
                        "ranks, or leave --recipe out"));
  EXPECT_THAT(RecipeRejection({"--recipe=mlperf", "--batch_size=33921"}, 2),
              HasSubstr("not 67842"));
  EXPECT_THAT(RecipeRejection({"--recipe=nvidia", "--batch_size=256", "--accumulate=2"}, 8),
              HasSubstr("published for 256 to 2048 images in a step, not 4096 (8 ranks x 2 batches "
                        "x 256)"));
  EXPECT_THAT(RecipeRejection({"--recipe=bede", "--batch_size=257"}, 32),
              HasSubstr("256 to 8192 images in a step, not 8224"));
  EXPECT_THAT(RecipeRejection({"--recipe=bede", "--batch_size=255"}, 1),
              HasSubstr("(1 rank x 255)"));
}

const RecordCacheUse kUse = {
    "/ssd/d/records-1", 144'300'000'000, 12'345'678'900, 200'000'000'000, 30, 70, ""};

TEST(DescribeRecordCache, SaysWhatIsThere) {
  EXPECT_EQ(DescribeRecordCacheAtStart(kUse),
            "records are kept in /ssd/d/records-1, up to 200.000 GB: 12.346 of 144.300 GB are "
            "there");
  EXPECT_EQ(DescribeRecordCacheAtEnd(kUse),
            "30 of 100 records that rank 0 has read were in /ssd/d/records-1, which has 12.346 of "
            "144.300 GB now");
}

TEST(DescribeRecordCache, SaysWhyNoMoreIsKept) {
  RecordCacheUse use = kUse;
  use.note = "it is full";
  EXPECT_TRUE(DescribeRecordCacheAtEnd(use).ends_with(" GB now; no more is kept: it is full"));
  use = {};
  use.note = "/data/train-1 was changed just now";
  EXPECT_EQ(DescribeRecordCacheAtStart(use),
            "records are not kept on this node: /data/train-1 was changed just now");
  EXPECT_EQ(DescribeRecordCacheAtEnd(use),
            "records were not kept on this node: /data/train-1 was changed just now");
}

TEST(DescribeScans, AddsUpWhatAllRanksHaveRead) {
  RunRanks(3, [](Communicator& communicator) {
    const ScanCost scanned = {1024, 1000, 1281167, 20498672, 0.734, ""};
    const ScanCost known = {1024, 0, 0, 0, 0.73, ""};
    EXPECT_EQ(
        DescribeScans(communicator.rank() == 1 ? scanned : known, "", "/run/d", communicator),
        "records of 1024 files found in 0.73 s: 1281167 headers, 20.5 MB, read by 1 of 3 ranks");
  });
}

TEST(DescribeScans, SaysWhereThePlacesOfRecordsAreWithoutAScan) {
  OneRank alone;
  const ScanCost known = {1, 0, 0, 0, 0.016, ""};
  EXPECT_EQ(DescribeScans(known, "", "/run/d", alone),
            "records of 1 file found in 0.02 s: an earlier scan is in /run/d");
  EXPECT_EQ(DescribeScans(known, "/idx", "/run/d", alone),
            "records of 1 file found in 0.02 s: index files are in /idx");
}

TEST(ScanCacheDirectory, IsThatOfThisUserInTheFirstDirectoryThatCanBeWritten) {
  const TemporaryDirectory directory;
  const std::string base = directory.path().string();
  for (const char* name : {"/a", "/b", "/c"}) fs::create_directory(base + name);
  std::map<std::string, std::string> variables;
  const EnvironmentLookup get = [&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  const std::string own = "/ddltraind-" + std::to_string(::geteuid());
  Options options;
  EXPECT_EQ(ScanCacheDirectory(options, get), "/tmp" + own);
  variables = {
      {"XDG_RUNTIME_DIR", base + "/none"}, {"SLURM_TMPDIR", "relative"}, {"TMPDIR", base + "/c"}};
  EXPECT_EQ(ScanCacheDirectory(options, get), base + "/c" + own);
  variables["SLURM_TMPDIR"] = base + "/b";
  EXPECT_EQ(ScanCacheDirectory(options, get), base + "/b" + own);
  variables["XDG_RUNTIME_DIR"] = base + "/a";
  EXPECT_EQ(ScanCacheDirectory(options, get), base + "/a" + own);
  options.scan_cache = "off";
  EXPECT_EQ(ScanCacheDirectory(options, get), "");
}

Options Split(const std::vector<std::string>& arguments, int ranks) {
  Options options = ParseOptions(arguments).options;
  SplitStep(options, ranks);
  return options;
}

std::string SplitRejection(const std::vector<std::string>& arguments, int ranks) {
  return tests::Rejection<Error>(
      EX_CONFIG, [&] { Split(arguments, ranks); }, "not refused");
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

TEST(SplitStep, RejectsWhatCannotBeSplitAndNamesWhatCan) {
  EXPECT_EQ(SplitRejection({"--global_batch_size=3"}, 4),
            "--global_batch_size=3 is less than an image for each of 4 ranks: give 4 or more, or "
            "start fewer ranks");
  EXPECT_EQ(SplitRejection({"--global_batch_size=37", "--batch_size=16"}, 4),
            "--global_batch_size=37: 4 ranks cannot compute so many images in batches of equal "
            "size up to --batch_size=16, but for very small ones: give 36 or 38, or start another "
            "number of ranks");
  EXPECT_THAT(SplitRejection({"--global_batch_size=16777213"}, 7),
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

TEST(SplitStep, OptionsThatFixASplitAreRejected) {
  const auto rejection = [](const std::vector<std::string>& arguments) -> std::string {
    return tests::Rejection<Error>(
        EX_USAGE, [&] { ParseOptions(arguments); }, "not refused");
  };
  EXPECT_THAT(rejection({"--global_batch_size=32", "--accumulate=2"}),
              HasSubstr("--accumulate follows from --global_batch_size"));
  EXPECT_THAT(
      rejection({"--global_batch_size=32", "--precision=fp16", "--reduce_precision=16bit"}),
      HasSubstr("--global_batch_size makes several of a step where the ranks become fewer"));
  for (const char* const wrong : {"0", "-1", "16777217", "many", "1.5"}) {
    EXPECT_THAT(rejection({std::string("--global_batch_size=") + wrong}),
                HasSubstr("--global_batch_size"))
        << wrong;
  }
}

}  // namespace
}  // namespace trainer
