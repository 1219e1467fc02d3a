// SPDX-License-Identifier: Apache-2.0

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/options/options_rejection.h"
#include "trainer/core/error.h"
#include "trainer/options/option_names.h"
#include "trainer/options/options.h"

namespace trainer {
namespace {

// Options that ask for logs and profiles.

TEST(LogOptions, RejectsAnMllogThatCouldNotBeWhole) {
  EXPECT_THAT(Rejection({"--batch_size=1", "--mode=train", "--mllog=file"}),
              HasSubstr("it needs --mode=train_and_evaluate, not train"));
  EXPECT_THAT(Rejection({"--batch_size=1", "--mllog_platform=Bede"}),
              HasSubstr("--mllog_platform is for the log of --mllog=FILE, which is not asked for"));
  EXPECT_THAT(Rejection({"--batch_size=1", "--mllog=file", "--mllog_org", ""}),
              HasSubstr("--mllog_org: has no value"));
  EXPECT_THAT(Rejection({"--batch_size=1", "--mllog=file", "--mllog_status=sold"}),
              HasSubstr("needs one of research, onprem, cloud, preview, not 'sold'"));
}

TEST(LogOptions, HoldsTheClosedDivisionToItsRules) {
  const std::string rules =
      "want --lr_schedule=polynomial --lr_end=0.0001 and a --weight_decay of 0.0001 times a power "
      "of two";
  const auto rejection = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"--batch_size=1", "--mllog=file", "--mllog_division=closed"});
    return Rejection(more);
  };
  EXPECT_THAT(rejection({}), HasSubstr(rules));
  EXPECT_THAT(rejection({"--lr_schedule=cosine"}), HasSubstr(rules));
  EXPECT_THAT(rejection({"--lr_schedule=polynomial", "--lr_end=0.0002"}), HasSubstr(rules));
  for (const char* value : {"0.0003", "0", "0.00010001"}) {
    EXPECT_THAT(rejection({"--lr_schedule=polynomial", "--weight_decay", value}), HasSubstr(rules))
        << value;
  }
  for (const char* value : {"0.0001", "0.0002", "0.00005", "0.0016"}) {
    EXPECT_EQ(rejection({"--lr_schedule=polynomial", "--weight_decay", value}), "accepted")
        << value;
  }
  EXPECT_EQ(rejection({"--recipe=mlperf"}), "accepted") << "whose values come later";
  EXPECT_THAT(Rejection({"--batch_size=1", "--mllog=file", "--mllog_division=half"}),
              HasSubstr("needs one of open, closed, not 'half'"));
  EXPECT_THAT(Rejection({"--batch_size=1", "--mllog_division=closed", "--lr_schedule=polynomial"}),
              HasSubstr("--mllog_division is for the log of --mllog=FILE"));
}

TEST(LogOptions, RejectsATraceOfNoSteps) {
  for (const char* text : {"7", "0:3", "7:0", "7:1001", "7:", ":3", "x:y"}) {
    EXPECT_THAT(Rejection({"--batch_size=1", std::string("--trace=") + text}),
                AllOf(HasSubstr("--trace"), Not(HasSubstr("accepted"))));
  }
  EXPECT_THAT(Rejection({"--batch_size=1", "--trace=7"}),
              HasSubstr("--trace: needs STEP:COUNT, both from 1, COUNT up to 1000, such as 200:20, "
                        "not '7'"));
  EXPECT_THAT(Rejection({"--batch_size=1", "--mode=evaluate", "--trace=7:3"}),
              HasSubstr("--trace shows the steps of a training: --mode=evaluate has none"));
  EXPECT_EQ(
      ParseOptions({"--batch_size=1", "--mode=training_benchmark", "--trace=7:3"}).options.trace,
      (StepWindow{7, 3}));
}

TEST(LogOptions, AProfileIsOfTheFourthToThe13thStepUnlessItIsTold) {
  const auto profile = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--batch_size=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return ParseOptions(arguments).options.profile;
  };
  EXPECT_EQ(profile({}), StepWindow());
  EXPECT_EQ(profile({"--profile", "--mode=train"}), (StepWindow{4, 10}));
  EXPECT_EQ(profile({"--profile=7:3", "--roofline=1:2"}), (StepWindow{7, 3}));
}

TEST(LogOptions, RejectsAProfileOfNothing) {
  EXPECT_THAT(Rejection({"--batch_size=1", "--profile=7"}),
              HasSubstr("--profile: needs STEP:COUNT, both from 1, COUNT up to 1000, such as "
                        "200:20, not '7'"));
  EXPECT_THAT(Rejection({"--batch_size=1", "--mode=inference_benchmark", "--profile"}),
              HasSubstr("--profile shows the steps of a training: --mode=inference_benchmark has "
                        "none"));
  EXPECT_THAT(Rejection({"--batch_size=1", "--profile", "--graph=on"}),
              HasSubstr("--profile times each op, which one graph of them all does not show: leave "
                        "out --graph=on"));
  EXPECT_THAT(Rejection({"--batch_size=1", "--profile", "--variability_dir=x"}),
              HasSubstr("--profile and --variability_dir both time each op"));
  EXPECT_THAT(Rejection({"--batch_size=1", "--roofline=1:2"}),
              HasSubstr("--roofline is for --profile, which is not asked for"));
  EXPECT_THAT(Rejection({"--batch_size=1", "--profile", "--roofline=1"}),
              HasSubstr("--roofline: needs GFLOPS:GBS, two numbers above 0, such as 989000:4800, "
                        "not '1'"));
}

TEST(LogOptions, RejectsLogsOfAPrediction) {
  EXPECT_THAT(Rejection({"--mode=predict", "--to_predict=x.jpg", "--prometheus_dir=metrics"}),
              HasSubstr("--prometheus_dir has nothing to show of --mode=predict"));
  EXPECT_THAT(Rejection({"--mode=predict", "--to_predict=x.jpg", "--tensorboard_dir=events"}),
              HasSubstr("--tensorboard_dir has nothing to show of --mode=predict"));
}

TEST(LogOptions, RejectsAJobCommentOfWhatHasNoSteps) {
  EXPECT_THAT(Rejection({"--mode=evaluate", "--batch_size=8", "--job_comment"}),
              HasSubstr("--job_comment shows how far a training is: --mode=evaluate has no steps"));
  EXPECT_FALSE(ParseOptions({"--batch_size=8"}).options.job_comment);
  EXPECT_TRUE(ParseOptions({"--batch_size=8", "--job_comment"}).options.job_comment);
}

// Options of --mode=predict.

TEST(Options, APredictionTakesSeveralImagesAndDirectories) {
  using Paths = std::vector<fs::path>;
  const auto images = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--mode=predict");
    return ParseOptions(arguments).options.to_predict;
  };
  EXPECT_EQ(images({"--to_predict=a.jpg"}), (Paths{"a.jpg"}));
  EXPECT_EQ(images({"--to_predict", "a.jpg", "b, c.png", "dir", "--json"}),
            (Paths{"a.jpg", "b, c.png", "dir"}));
  EXPECT_EQ(images({"--to_predict=a.jpg", "b.jpg", "--to_predict=c.jpg"}),
            (Paths{"a.jpg", "b.jpg", "c.jpg"}));
  const Options options =
      ParseOptions({"--mode=predict", "--json", "--labels=x", "--to_predict", "[a].jpg", "b"})
          .options;
  EXPECT_EQ(options.to_predict, (Paths{"[a].jpg", "b"}));
  EXPECT_TRUE(options.json);
  EXPECT_EQ(options.labels, "x");
}

TEST(Options, WhatAPredictionPrintsIsRejectedElsewhere) {
  EXPECT_THAT(
      Rejection({"--batch_size=8", "--json"}),
      HasSubstr("--json is about what --mode=predict prints, not --mode=train_and_evaluate"));
  EXPECT_THAT(Rejection({"--batch_size=8", "--mode=evaluate", "--labels=x"}),
              HasSubstr("--labels is about what --mode=predict prints, not --mode=evaluate"));
  EXPECT_EQ(ParseOptions({"--batch_size=8", "--label=0.1"}).options.label_smoothing, 0.1);
}

// What of the options all ranks must share.

// Options with another value than by default, for each row of the table.
Options WithAnother(const OptionRow& row) {
  static const std::map<std::string, std::string> words = {{"mode", "train"},
                                                           {"arch", "resnet101"},
                                                           {"iter_unit", "batch"},
                                                           {"augment", "none"},
                                                           {"augmentation", "torchvision"},
                                                           {"shuffle", "none"},
                                                           {"bad_records", "skip"},
                                                           {"scan_cache", "off"},
                                                           {"on_nan", "skip"},
                                                           {"weight_init", "fan_in"},
                                                           {"recipe", "mlperf"},
                                                           {"optimizer", "lars"},
                                                           {"lr_scaling", "sqrt"},
                                                           {"lr_schedule", "cosine"},
                                                           {"precision", "tf32"},
                                                           {"resume", "never"},
                                                           {"backend", "reference"},
                                                           {"comm", "mpi"},
                                                           {"graph", "off"},
                                                           {"dry_run", "full"},
                                                           {"reduce_precision", "16bit"},
                                                           {"data_format", "NCHW"},
                                                           {"mllog_status", "cloud"},
                                                           {"mllog_division", "closed"},
                                                           {"trace", "7:3"},
                                                           {"profile", "7:3"},
                                                           {"roofline", "7:3"},
                                                           {"momentum", "0.5"},
                                                           {"ema", "0.5"},
                                                           {"label_smoothing", "0.5"},
                                                           {"gpu_memory_fraction", "0.5"},
                                                           {"checkpoint_in_background", "off"}};
  std::vector<std::string> arguments = {"--batch_size=8"};
  if (row.name == "reduce_precision") arguments.emplace_back("--precision=fp16");
  if (row.name.starts_with("mllog_")) arguments.emplace_back("--mllog=file");
  if (row.name == "new_head") arguments.emplace_back("--init_from=77");
  if (row.name == "stop_at_top1") arguments.emplace_back("--eval_every=3");
  if (row.name == "record_cache_gb") arguments.emplace_back("--record_cache=/tmp");
  if (row.name == "lr_end" || row.name == "lr_decay_steps" || row.name == "mllog_division") {
    arguments.emplace_back("--lr_schedule=polynomial");
  }
  if (row.name == "roofline") arguments.emplace_back("--profile");
  if (row.name == "json" || row.name == "labels") {
    arguments.insert(arguments.end(), {"--mode=predict", "--to_predict=77"});
  }
  const auto word = words.find(row.name);
  if (row.access.is_on_or_off) {
    arguments.push_back("--" + row.name);
  } else {
    arguments.push_back("--" + row.name + "=" + (word == words.end() ? "77" : word->second));
  }
  return ParseOptions(arguments).options;
}

std::vector<std::string> NamesThatDiffer(const std::vector<ConsistencyItem>& a,
                                         const std::vector<ConsistencyItem>& b) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) names.push_back(a[i].name);
  }
  return names;
}

// What else than their own value, or in its place, these rows change.
const std::map<std::string, std::vector<std::string>> kOthers = {
    {"amp", {"--precision", "--use_tf_amp"}},
    {"cosine_lr", {"--lr_schedule", "--use_cosine_lr"}},
    {"dali", {"--augmentation", "--use_dali"}},
    {"finetune_checkpoint", {"--init_from"}},
    {"json", {"--mode", "--batch_size", "--to_predict", "--json"}},
    {"lr_decay_steps", {"--lr_schedule", "--lr_decay_steps"}},
    {"lr_end", {"--lr_schedule", "--lr_end"}},
    {"labels", {"--mode", "--batch_size", "--to_predict", "--labels"}},
    {"mllog_division", {"--lr_schedule", "--mllog", "--mllog_division"}},
    {"mllog_org", {"--mllog", "--mllog_org"}},
    {"mllog_platform", {"--mllog", "--mllog_platform"}},
    {"mllog_status", {"--mllog", "--mllog_status"}},
    {"new_head", {"--init_from", "--new_head"}},
    {"reduce_precision", {"--precision", "--reduce_precision"}},
    {"roofline", {"--profile", "--roofline"}},
    {"stop_at_top1", {"--eval_every", "--stop_at_top1"}},
    {"static_loss_scale", {"--loss_scale", "--use_static_loss_scaling"}},
    {"synthetic_data_size", {"--image_size"}},
    {"use_cosine_lr", {"--lr_schedule", "--use_cosine_lr"}},
    {"use_dali", {"--augmentation", "--use_dali"}},
    {"use_tf_amp", {"--precision", "--use_tf_amp"}},
    {"xla", {"--use_xla"}}};

TEST(SharedOptions, HoldEveryOptionThatRanksMayNotHaveOfTheirOwn) {
  const std::vector<ConsistencyItem> usual =
      SharedOptions(ParseOptions({"--batch_size=8"}).options);
  for (const OptionRow& row : OptionTable()) {
    const std::vector<std::string> names = NamesThatDiffer(usual, SharedOptions(WithAnother(row)));
    const auto several = kOthers.find(row.name);
    const bool has_own_value =
        row.name == "reduce_precision" || row.name == "use_tf_amp" || row.name == "use_dali" ||
        row.name == "use_cosine_lr" || row.name == "lr_end" || row.name == "lr_decay_steps" ||
        row.name == "roofline" || row.name == "stop_at_top1" || row.name == "new_head" ||
        row.name == "json" || row.name == "labels" || row.name.starts_with("mllog_");
    EXPECT_EQ(several != kOthers.end() && !has_own_value, row.rank_rule == RankRule::kOtherName)
        << row.name;
    if (several != kOthers.end()) {
      EXPECT_EQ(names, several->second) << row.name;
    } else if (row.rank_rule == RankRule::kOwn) {
      EXPECT_THAT(names, IsEmpty()) << row.name;
    } else {
      EXPECT_THAT(names, ElementsAre("--" + row.name));
    }
  }
}

// Whoever lets ranks differ in another one has thought about it.
TEST(SharedOptions, TheseAreTheOnesThatRanksMayHaveOfTheirOwn) {
  std::set<std::string> own;
  std::set<std::string> given_alike;
  for (const OptionRow& row : OptionTable()) {
    if (row.rank_rule == RankRule::kOwn) own.insert(row.name);
    if (row.rank_rule == RankRule::kMustMatch) given_alike.insert(row.name);
  }
  EXPECT_THAT(own,
              ElementsAre("data_idx_dir", "data_threads", "display_every", "gpu_id", "plan_cache",
                          "prefetch", "record_cache", "record_cache_gb", "scan_cache", "threads"));
  EXPECT_THAT(given_alike, ElementsAre("data_dir", "dump_state", "export_dir", "init_from", "mllog",
                                       "prometheus_dir", "tensorboard_dir", "variability_dir"));
}

TEST(SharedOptions, AreTheValuesThatCountHoweverTheyWereSpelled) {
  const auto shared = [](std::vector<std::string> arguments) {
    arguments.emplace_back("--batch_size=8");
    return SharedOptions(ParseOptions(arguments).options);
  };
  EXPECT_EQ(shared({"--lr_init=0.10", "--seed", "1"}), shared({"--lr_init", "1e-1"}));
  EXPECT_EQ(shared({"--use_cosine"}), shared({"--nouse_cosine_lr", "--use-cosine-lr"}));
  EXPECT_EQ(shared({"--data_dir=/local1/data"}), shared({"--data_dir=/local2/data"}));
  EXPECT_NE(shared({"--data_dir=/local1/data"}), shared({}));
  EXPECT_NE(shared({"--weight_decay=3.0517578125e-05"}),
            shared({"--weight_decay=3.0517578126e-05"}));
}

TEST(SharedOptions, ReadAsTheyAreWritten) {
  const std::vector<ConsistencyItem> items =
      SharedOptions(ParseOptions({"--batch_size=8", "--use_cosine_lr", "--data_dir=d",
                                  "--seed=18446744073709551615"})
                        .options);
  EXPECT_THAT(items, Contains(ConsistencyItem{"--batch_size", "--batch_size=8"}));
  EXPECT_THAT(items, Contains(ConsistencyItem{"--seed", "--seed=18446744073709551615"}));
  EXPECT_THAT(items, Contains(ConsistencyItem{"--lr_init", "--lr_init=0.1"}));
  EXPECT_THAT(items, Contains(ConsistencyItem{"--use_cosine_lr", "--use_cosine_lr"}));
  EXPECT_THAT(items, Contains(ConsistencyItem{"--deterministic", "no --deterministic"}));
  EXPECT_THAT(items, Contains(ConsistencyItem{"--data_dir", "--data_dir"}));
  EXPECT_THAT(items, Contains(ConsistencyItem{"--init_from", "no --init_from"}));
}

// The command lines of NVIDIA's scripts, as they are published: DeepLearningExamples,
// TensorFlow/Classification/ConvNets, resnet50v1.5/training and the page of the network.  What is
// checked is that they are taken and mean what they mean there.

struct Script {
  std::string name;
  std::string arguments;  // behind main.py
  // What they mean.
  std::string mode;
  std::int64_t batch;
  std::string precision;
  double static_scale;  // 0: the loss scale adapts
  bool cosine;
  double mixup;
};

// gtest prints it so.
std::ostream& operator<<(std::ostream& out, const Script& script) { return out << script.name; }

// What the training scripts share.
constexpr char kRates[] =
    " --label_smoothing 0.1 --lr_init=0.256 --lr_warmup_epochs=8 --momentum=0.875 "
    "--weight_decay=3.0517578125e-05 ";
constexpr char kPlaces[] =
    " --data_dir=/data/tfrecords --data_idx_dir=/data/dali_idx --results_dir=/w/results "
    "--weight_init=fan_in";
constexpr char kTrain[] = "--arch=resnet50 --mode=train_and_evaluate --iter_unit=epoch ";

std::string Training(const std::string& epochs_and_batch, const std::string& cosine,
                     const std::string& precision) {
  return kTrain + epochs_and_batch + " --warmup_steps=100 " + cosine + kRates + precision + kPlaces;
}

std::vector<Script> Scripts() {
  const std::string both = "train_and_evaluate";
  return {
      {"DGX1_RN50_FP32_90E", Training("--num_iter=90 --batch_size=128", "--cosine_lr", ""), both,
       128, "fp32", 0, true, 0},
      {"DGX1_RN50_AMP_90E",
       Training("--num_iter=90 --batch_size=256", "--cosine_lr", "--amp --static_loss_scale 128"),
       both, 256, "fp16", 128, true, 0},
      {"DGX2_RN50_FP32_250E",
       Training("--num_iter=250 --mixup=0.2 --batch_size=128", "--cosine_lr", ""), both, 128,
       "fp32", 0, true, 0.2},
      {"DGX2_RN50_AMP_250E",
       Training("--num_iter=250 --mixup=0.2 --batch_size=256", "--cosine_lr",
                "--amp --static_loss_scale 128"),
       both, 256, "fp16", 128, true, 0.2},
      {"DGXA100_RN50_TF32_90E", Training("--num_iter=90 --batch_size=256", "--cosine_lr", ""), both,
       256, "fp32", 0, true, 0},
      {"DGXA100_RN50_AMP_90E",
       Training("--num_iter=90 --batch_size=256", "--use_cosine",
                "--use_tf_amp --use_static_loss_scaling --loss_scale 128"),
       both, 256, "fp16", 128, true, 0},
      {"GENERIC_fp16",
       Training("--num_iter=50 --batch_size=256", "--use_cosine",
                "--precision=fp16 --use_static_loss_scaling --loss_scale=128"),
       both, 256, "fp16", 128, true, 0},
      {"GENERIC_amp",
       Training("--num_iter=50 --batch_size=256", "--use_cosine",
                "--precision=fp32 --use_tf_amp --use_static_loss_scaling --loss_scale=128"),
       both, 256, "fp16", 128, true, 0},
      {"GENERIC_dali_xla",
       Training("--num_iter=50 --batch_size=128", "--use_cosine", "--precision=fp32") +
           " --use_dali --use_xla",
       both, 128, "fp32", 0, true, 0},
      {"readme_other",
       Training("--num_iter=90 --batch_size=256", "--cosine_lr", "") + " --xla --dali", both, 256,
       "fp32", 0, true, 0},
      {"GPU1_RN50_QAT",
       "--mode=train_and_evaluate --batch_size=32 --lr_warmup_epochs=1 --quantize --symmetric "
       "--use_qdq --label_smoothing 0.1 --lr_init=0.00005 --momentum=0.875 "
       "--weight_decay=3.0517578125e-05 --finetune_checkpoint=model --data_dir=d --results_dir=r "
       "--num_iter 10 --data_format NHWC",
       both, 32, "fp32", 0, false, 0},
      {"training_perf_amp",
       "--mode=training_benchmark --warmup_steps 200 --num_iter 500 --iter_unit batch --batch_size "
       "256 --data_dir=/data/tfrecords/ --results_dir=/tmp/result --amp --static_loss_scale 128 "
       "--xla",
       "training_benchmark", 256, "fp16", 128, false, 0},
      {"readme_benchmark_amp",
       "--arch=resnet50 --mode=training_benchmark --amp --warmup_steps 200 --batch_size 64 "
       "--results_dir=r",
       "training_benchmark", 64, "fp16", 0, false, 0},
      {"inference_benchmark",
       "--mode=inference_benchmark --warmup_steps 50 --num_iter 400 --iter_unit batch --batch_size "
       "8 --data_dir=d --results_dir=/tmp/results --use_tf_amp --use_xla --use_dali --data_idx_dir "
       "i",
       "inference_benchmark", 8, "fp16", 0, false, 0},
      {"readme_evaluate",
       "--arch=resnet50 --mode=evaluate --data_dir=/data/tfrecords --batch_size 128 --model_dir m "
       "--results_dir r --xla --amp",
       "evaluate", 128, "fp16", 0, false, 0},
  };
}

class NvidiasScript : public testing::TestWithParam<Script> {};

TEST_P(NvidiasScript, IsTakenAndMeansTheSame) {
  const Script& script = GetParam();
  std::istringstream words(script.arguments);
  const Options options = ParseOptions({std::istream_iterator<std::string>(words), {}}).options;
  EXPECT_EQ(NameOf(kModes, options.mode), script.mode);
  EXPECT_EQ(options.batch_size, script.batch);
  EXPECT_EQ(options.precision, script.precision);
  EXPECT_EQ(options.use_static_loss_scaling, script.static_scale > 0);
  EXPECT_EQ(options.loss_scale, script.static_scale > 0 ? script.static_scale : 256);
  EXPECT_EQ(options.schedule.lr_schedule, script.cosine ? RateDecay::kCosine : RateDecay::kSteps);
  EXPECT_EQ(options.mixup, script.mixup);
}

INSTANTIATE_TEST_SUITE_P(Published, NvidiasScript, testing::ValuesIn(Scripts()),
                         [](const auto& test) { return test.param.name; });

Options Parse(std::vector<std::string> arguments) {
  arguments.emplace_back("--batch_size=1");
  return ParseOptions(arguments).options;
}

TEST(NvidiasOptions, MixedPrecisionLeavesBfloat16AndCanBeTakenBack) {
  EXPECT_EQ(Parse({"--amp", "--precision=bf16"}).precision, "bf16");
  EXPECT_EQ(Parse({"--amp", "--precision=tf32"}).precision, "fp16");
  EXPECT_EQ(Parse({"--use_tf_amp", "--nouse_tf_amp"}).precision, "fp32");
}

TEST(NvidiasOptions, ALossScaleOfMinusOneAdapts) {
  const Options options = Parse({"--use_static_loss_scaling", "--static_loss_scale=-1"});
  EXPECT_FALSE(options.use_static_loss_scaling);
  EXPECT_EQ(options.loss_scale, 256);
}

TEST(NvidiasOptions, TheSizeOfSyntheticImagesIsOfThoseAlone) {
  EXPECT_EQ(Parse({"--synthetic_data_size=96"}).image_size, 96);
  EXPECT_EQ(Parse({"--synthetic_data_size=96", "--data_dir=d"}).image_size, 224);
}

std::string RejectionOfArgument(const std::string& argument) {
  return tests::Rejection<Error>(
      EX_USAGE, [&] { Parse({argument}); }, "accepted");
}

TEST(NvidiasOptions, RejectsWhatTheyCannotBe) {
  EXPECT_THAT(RejectionOfArgument("--static_loss_scale=0"), HasSubstr("a number above 0, or -1"));
  EXPECT_THAT(RejectionOfArgument("--synthetic_data_size=8"),
              HasSubstr("a number from 32 to 4096"));
  EXPECT_THAT(RejectionOfArgument("--amp=maybe"), HasSubstr("--amp"));
  // A mistake in one of the scripts (DGX1_RN50_AMP_250E), which main.py refuses as well.
  EXPECT_THAT(RejectionOfArgument("--muxup=0.2"), HasSubstr("did you mean '--mixup'?"));
}

}  // namespace
}  // namespace trainer
