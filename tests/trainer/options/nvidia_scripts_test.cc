// SPDX-License-Identifier: Apache-2.0
//
// The command lines of NVIDIA's scripts, as they are published: DeepLearningExamples,
// TensorFlow/Classification/ConvNets, resnet50v1.5/training and the page of the network.  What is
// checked is that they are taken and mean what they mean there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "trainer/core/error.h"
#include "trainer/options/option_names.h"
#include "trainer/options/options.h"

namespace trainer {
namespace {

using testing::HasSubstr;

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

std::string RefusalOfArgument(const std::string& argument) {
  try {
    Parse({argument});
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), EX_USAGE);
    return error.what();
  }
  return "accepted";
}

TEST(NvidiasOptions, RefusesWhatTheyCannotBe) {
  EXPECT_THAT(RefusalOfArgument("--static_loss_scale=0"), HasSubstr("a number above 0, or -1"));
  EXPECT_THAT(RefusalOfArgument("--synthetic_data_size=8"), HasSubstr("a number from 32 to 4096"));
  EXPECT_THAT(RefusalOfArgument("--amp=maybe"), HasSubstr("--amp"));
  // A mistake in one of the scripts (DGX1_RN50_AMP_250E), which main.py refuses as well.
  EXPECT_THAT(RefusalOfArgument("--muxup=0.2"), HasSubstr("did you mean '--mixup'?"));
}

}  // namespace
}  // namespace trainer
