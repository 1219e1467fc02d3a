// SPDX-License-Identifier: Apache-2.0
//
// Options that ask for logs and profiles.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/trainer/options/options_refusal.h"

namespace trainer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(LogOptions, RefusesAnMllogThatCouldNotBeWhole) {
  EXPECT_THAT(Refusal({"--batch_size=1", "--mode=train", "--mllog=file"}),
              HasSubstr("it needs --mode=train_and_evaluate, not train"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--mllog_platform=Bede"}),
              HasSubstr("--mllog_platform is for the log of --mllog=FILE, which is not asked for"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--mllog=file", "--mllog_org", ""}),
              HasSubstr("--mllog_org: has no value"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--mllog=file", "--mllog_status=sold"}),
              HasSubstr("needs one of research, onprem, cloud, preview, not 'sold'"));
}

TEST(LogOptions, HoldsTheClosedDivisionToItsRules) {
  const std::string rules =
      "want --lr_schedule=polynomial --lr_end=0.0001 and a --weight_decay of 0.0001 times a power "
      "of two";
  const auto refusal = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"--batch_size=1", "--mllog=file", "--mllog_division=closed"});
    return Refusal(more);
  };
  EXPECT_THAT(refusal({}), HasSubstr(rules));
  EXPECT_THAT(refusal({"--lr_schedule=cosine"}), HasSubstr(rules));
  EXPECT_THAT(refusal({"--lr_schedule=polynomial", "--lr_end=0.0002"}), HasSubstr(rules));
  for (const char* value : {"0.0003", "0", "0.00010001"}) {
    EXPECT_THAT(refusal({"--lr_schedule=polynomial", "--weight_decay", value}), HasSubstr(rules))
        << value;
  }
  for (const char* value : {"0.0001", "0.0002", "0.00005", "0.0016"}) {
    EXPECT_EQ(refusal({"--lr_schedule=polynomial", "--weight_decay", value}), "accepted") << value;
  }
  EXPECT_EQ(refusal({"--recipe=mlperf"}), "accepted") << "whose values come later";
  EXPECT_THAT(Refusal({"--batch_size=1", "--mllog=file", "--mllog_division=half"}),
              HasSubstr("needs one of open, closed, not 'half'"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--mllog_division=closed", "--lr_schedule=polynomial"}),
              HasSubstr("--mllog_division is for the log of --mllog=FILE"));
}

TEST(LogOptions, RefusesATraceOfNoSteps) {
  for (const char* text : {"7", "0:3", "7:0", "7:1001", "7:", ":3", "x:y"}) {
    EXPECT_THAT(Refusal({"--batch_size=1", std::string("--trace=") + text}),
                AllOf(HasSubstr("--trace"), Not(HasSubstr("accepted"))));
  }
  EXPECT_THAT(Refusal({"--batch_size=1", "--trace=7"}),
              HasSubstr("--trace: needs STEP:COUNT, both from 1, COUNT up to 1000, such as 200:20, "
                        "not '7'"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--mode=evaluate", "--trace=7:3"}),
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

TEST(LogOptions, RefusesAProfileOfNothing) {
  EXPECT_THAT(Refusal({"--batch_size=1", "--profile=7"}),
              HasSubstr("--profile: needs STEP:COUNT, both from 1, COUNT up to 1000, such as "
                        "200:20, not '7'"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--mode=inference_benchmark", "--profile"}),
              HasSubstr("--profile shows the steps of a training: --mode=inference_benchmark has "
                        "none"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--profile", "--graph=on"}),
              HasSubstr("--profile times each op, which one graph of them all does not show: leave "
                        "out --graph=on"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--profile", "--variability_dir=x"}),
              HasSubstr("--profile and --variability_dir both time each op"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--roofline=1:2"}),
              HasSubstr("--roofline is for --profile, which is not asked for"));
  EXPECT_THAT(Refusal({"--batch_size=1", "--profile", "--roofline=1"}),
              HasSubstr("--roofline: needs GFLOPS:GBS, two numbers above 0, such as 989000:4800, "
                        "not '1'"));
}

TEST(LogOptions, RefusesLogsOfAPrediction) {
  EXPECT_THAT(Refusal({"--mode=predict", "--to_predict=x.jpg", "--prometheus_dir=metrics"}),
              HasSubstr("--prometheus_dir has nothing to show of --mode=predict"));
  EXPECT_THAT(Refusal({"--mode=predict", "--to_predict=x.jpg", "--tensorboard_dir=events"}),
              HasSubstr("--tensorboard_dir has nothing to show of --mode=predict"));
}

TEST(LogOptions, RefusesAJobCommentOfWhatHasNoSteps) {
  EXPECT_THAT(Refusal({"--mode=evaluate", "--batch_size=8", "--job_comment"}),
              HasSubstr("--job_comment shows how far a training is: --mode=evaluate has no steps"));
  EXPECT_FALSE(ParseOptions({"--batch_size=8"}).options.job_comment);
  EXPECT_TRUE(ParseOptions({"--batch_size=8", "--job_comment"}).options.job_comment);
}

}  // namespace
}  // namespace trainer
