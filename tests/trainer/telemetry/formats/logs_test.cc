// SPDX-License-Identifier: Apache-2.0

#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/emulated.h"
#include "tests/support/temporary_directory.h"
#include "trainer/telemetry/formats/dllogger.h"
#include "trainer/telemetry/formats/mllog.h"
#include "trainer/telemetry/formats/nvlog.h"
#include "trainer/telemetry/formats/progress.h"
#include "trainer/telemetry/formats/training_json.h"

namespace trainer {
namespace {

using ::testing::ContainsRegex;

class DlLoggerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  TimePoint now_{std::chrono::microseconds(1593597600123456)};  // 2020-07-01 10:00:00.123456 UTC
  std::ostringstream text_;
  std::ostringstream json_;
  DlLogger log_{&text_, &json_, [this] { return now_; }};
};

const DlData kStepData = {{"imgs_per_sec", 365.1},
                          {"cross_entropy", 7.0},
                          {"l2_loss", 0.7},
                          {"total_loss", 7.7},
                          {"learning_rate", 0.0}};

TEST_F(DlLoggerTest, PrintsAStep) {
  log_.Log({0, 21}, kStepData);
  EXPECT_EQ(text_.str(),
            "DLL 2020-07-01 10:00:00.123456 - (0, 21) imgs_per_sec : 365.1  cross_entropy : 7.0  "
            "l2_loss : 0.7  total_loss : 7.7  learning_rate : 0.0 \n");
}

TEST_F(DlLoggerTest, IsReadByTheExpressionsOfDlperf) {
  log_.Log({0, 21}, kStepData);
  const std::string line = text_.str();
  // extract_tensorflow_logs.py: r' imgs_per_sec \: \d+.\d+ '
  EXPECT_THAT(line, ContainsRegex(" imgs_per_sec : [0-9]+.[0-9]+ "));
  // extract_tensorflow_logs_time.py: the first time on the line, with microseconds
  EXPECT_THAT(line, ContainsRegex("[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[[:space:]]"
                                  "[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}.[0-9]{1,6}"));
}

TEST_F(DlLoggerTest, PrintsEpochAndRunAsPythonTuples) {
  log_.Log({7}, {{"loss", 1.0}});
  log_.Log({}, {{"train_throughput", 365.25}});
  log_.Log({}, {});
  EXPECT_EQ(text_.str(),
            "DLL 2020-07-01 10:00:00.123456 - (7,) loss : 1.0 \n"
            "DLL 2020-07-01 10:00:00.123456 - () train_throughput : 365.25 \n"
            "DLL 2020-07-01 10:00:00.123456 - () \n");
}

TEST_F(DlLoggerTest, PrintsParametersAndNoUnits) {
  log_.Metadata("imgs_per_sec", {{"unit", "images/s"}});
  log_.Parameters({{"batch_size", std::int64_t{256}}, {"use_xla", true}, {"mode", "train"}});
  EXPECT_EQ(text_.str(), "");  // the run may still be refused
  log_.Log({0, 1}, {{"imgs_per_sec", 10.5}});
  EXPECT_EQ(text_.str(),
            "DLL 2020-07-01 10:00:00.123456 - PARAMETER batch_size : 256  use_xla : True  "
            "mode : train \n"
            "DLL 2020-07-01 10:00:00.123456 - (0, 1) imgs_per_sec : 10.5 \n");
}

TEST_F(DlLoggerTest, WritesOneJsonObjectPerLine) {
  now_ += std::chrono::microseconds(1'500'000);
  log_.Metadata("imgs_per_sec", {{"unit", "images/s"}});
  log_.Log({0, 21}, {{"imgs_per_sec", 365.1}, {"note", "a \"b\"\n"}});
  log_.Log({}, {{"train_throughput", 1e-5}});
  log_.Parameters({{"seed", std::int64_t{1}}});
  log_.StartRun();
  const std::string when =
      "\"datetime\": \"2020-07-01 10:00:01.623456\", \"elapsedtime\": \"1.5\", \"type\": \"LOG\", ";
  EXPECT_EQ(
      json_.str(),
      "DLLL {\"timestamp\": \"1593597601.623456\", \"elapsedtime\": \"1.5\", "
      "\"datetime\": \"2020-07-01 10:00:01.623456\", \"type\": \"METADATA\", "
      "\"metric\": \"imgs_per_sec\", \"metadata\": {\"unit\": \"images/s\"}}\n"
      "DLLL {\"timestamp\": \"1593597601.623456\", " +
          when +
          "\"step\": [0, 21], \"data\": {\"imgs_per_sec\": 365.1, \"note\": \"a \\\"b\\\"\\n\"}}\n"
          "DLLL {\"timestamp\": \"1593597601.623456\", " +
          when +
          "\"step\": [], \"data\": {\"train_throughput\": 1e-05}}\n"
          "DLLL {\"timestamp\": \"1593597601.623456\", " +
          when + "\"step\": \"PARAMETER\", \"data\": {\"seed\": 1}}\n");
}

TEST_F(DlLoggerTest, WritesToOneSinkWhenTheOtherIsMissing) {
  DlLogger text_only(&text_, nullptr);
  text_only.Metadata("a", {{"unit", "ms"}});
  text_only.Log({1}, {{"a", 1.0}});
  EXPECT_NE(text_.str().find("(1,) a : 1.0 \n"), std::string::npos);
  DlLogger json_only(nullptr, &json_);
  json_only.Log({1}, {{"a", 1.0}});
  EXPECT_NE(json_.str().find("\"step\": [1]"), std::string::npos);
}

// The moment of the first line that the Bede documentation shows.
WallClock At1605627653() {
  return [] {
    return TimePoint(std::chrono::duration_cast<TimePoint::duration>(
        std::chrono::nanoseconds(1605627653398838758)));
  };
}

class NvLogTest : public ::testing::Test {
 protected:
  std::ostringstream out_;
  NvLog log_{out_, At1605627653()};
};

TEST_F(NvLogTest, PrintsAnIterationAsBedesDocumentationShowsIt) {
  log_.Step({.launch_step = 0,
             .is_displayed = true,
             .images_per_second = 37.5667719118656,
             .cross_entropy = 9.02121639251709,
             .l2_loss = 0.7498071789741516,
             .total_loss = 9.771023750305176,
             .learning_rate = 0});
  EXPECT_EQ(out_.str(),
            ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:100) iteration: 0\n"
            ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:101) imgs_per_sec: "
            "37.5667719118656\n"
            ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:102) cross_entropy: "
            "9.02121639251709\n"
            ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:103) l2_loss: "
            "0.7498071789741516\n"
            ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:104) total_loss: "
            "9.771023750305176\n"
            ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:105) learning_rate: "
            "0.0\n");
}

TEST_F(NvLogTest, PrintsTheEvaluationAsBedesDocumentationShowsIt) {
  log_.StartEvaluation({.steps = 195, .global_batch = 256});
  log_.EndEvaluation({.top1 = 0.75863, .top5 = 0.92823});
  const std::string start = ":::NVLOGv0.2.3 resnet 1605627653.398838758 (runner.py:";
  EXPECT_EQ(out_.str(), start + "555) Starting Model Evaluation...\n" +  //
                            start + "556) Evaluation Epochs: 1\n" +      //
                            start + "557) Evaluation Steps: 195\n" +     //
                            start + "558) Decay Steps: -1\n" +           //
                            start + "559) Global Batch Size: 256\n" +    //
                            start + "610) Top-1 Accuracy: 75.863\n" +    //
                            start + "611) Top-5 Accuracy: 92.823\n" +    //
                            start + "630) Ending Model Evaluation ...\n");
}

TEST_F(NvLogTest, PrintsTheStartOfTraining) {
  log_.StartTraining({.world_size = 4,
                      .batch_per_rank = 256,
                      .initial_learning_rate = 0.256,
                      .decay_steps = 62550,
                      .momentum = 0.875,
                      .weight_decay = 3.0517578125e-05,
                      .total_steps = 62550,
                      .epochs = 50,
                      .steps_per_epoch = 1251});
  log_.EndTraining({});
  const std::string start = ":::NVLOGv0.2.3 resnet 1605627653.398838758 (runner.py:";
  EXPECT_EQ(out_.str(), start + "365) Starting Model Training...\n" +                 //
                            start + "366) Training Epochs: 50\n" +                    //
                            start + "367) Total Steps: 62550\n" +                     //
                            start + "368) Steps per Epoch: 1251.0\n" +                //
                            start + "369) Decay Steps: 62550\n" +                     //
                            start + "370) Weight Decay Factor: 3.0517578125e-05\n" +  //
                            start + "371) Init Learning Rate: 0.256\n" +              //
                            start + "372) Momentum: 0.875\n" +                        //
                            start + "373) Num GPUs: 4\n" +                            //
                            start + "374) Per-GPU Batch Size: 256\n" +                //
                            start + "488) Ending Model Training ...\n");
}

TEST_F(NvLogTest, PrintsTheEndOfAnEpochAndNoStepThatIsNotDisplayed) {
  log_.Step({.epoch = 3});
  EXPECT_EQ(out_.str(), "");
  log_.Step({.epoch = 3,
             .ends_epoch = true,
             .cross_entropy = 2.5,
             .l2_loss = 0.5,
             .total_loss = 3,
             .learning_rate = 1e-5});
  const std::string start = ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:";
  EXPECT_EQ(out_.str(), start + "112) epoch: 3\n" +                      //
                            start + "113) final_cross_entropy: 2.5\n" +  //
                            start + "114) final_l2_loss: 0.5\n" +        //
                            start + "115) final_total_loss: 3.0\n" +     //
                            start + "116) final_learning_rate: 1e-05\n");
}

class MlLogTest : public ::testing::Test {
 protected:
  // The lines since the last call, each as "key" or "key epoch".
  std::vector<std::string> Keys() {
    std::vector<std::string> keys;
    std::istringstream lines(out_.str());
    out_.str("");
    for (std::string line; std::getline(lines, line);) {
      const std::string token = ":::MLLOG ";
      EXPECT_EQ(line.substr(0, token.size()), token);
      const auto entry = nlohmann::json::parse(line.substr(token.size()));
      std::string key = entry.at("key");
      if (entry.at("metadata").contains("epoch_num")) {
        key += " " + std::to_string(entry["metadata"]["epoch_num"].get<int>());
      }
      keys.push_back(key);
    }
    return keys;
  }

  TimePoint now_{std::chrono::microseconds(1593597600123999)};
  std::ostringstream out_;
  Options options_ = [] {
    Options options;
    options.mllog_division = "closed";
    options.mllog_org = "Durham";
    options.mllog_platform = "Bede";
    options.mllog_status = "onprem";
    return options;
  }();
  MlLog log_{out_, options_, [this] { return now_; }};
};

TEST_F(MlLogTest, WritesALineAsMlperfsLibraryDoes) {
  EXPECT_EQ(out_.str().substr(0, out_.str().find('\n')),
            ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1593597600123, \"event_type\": "
            "\"POINT_IN_TIME\", \"key\": \"submission_benchmark\", \"value\": \"resnet\", "
            "\"metadata\": {}}");
  EXPECT_THAT(out_.str(), EndsWith("\"event_type\": \"INTERVAL_START\", \"key\": \"init_start\", "
                                   "\"value\": null, \"metadata\": {}}\n"));
}

TEST_F(MlLogTest, NamesTheSubmission) {
  EXPECT_THAT(out_.str(), HasSubstr("\"key\": \"submission_division\", \"value\": \"closed\""));
  EXPECT_THAT(out_.str(), HasSubstr("\"key\": \"submission_org\", \"value\": \"Durham\""));
  EXPECT_THAT(out_.str(), HasSubstr("\"key\": \"submission_platform\", \"value\": \"Bede\""));
  EXPECT_THAT(out_.str(), HasSubstr("\"key\": \"submission_status\", \"value\": \"onprem\""));
  EXPECT_THAT(out_.str(), HasSubstr("\"key\": \"cache_clear\", \"value\": false"));
}

TEST_F(MlLogTest, HasTheEventsOfARunInOrder) {
  EXPECT_THAT(Keys(),
              ElementsAre("submission_benchmark", "submission_division", "submission_org",
                          "submission_platform", "submission_status", "cache_clear", "init_start"));
  log_.StartTraining({.epochs = 2});
  EXPECT_THAT(Keys(),
              ElementsAre("seed", "global_batch_size", "gradient_accumulation_steps",
                          "train_samples", "eval_samples", "opt_name", "sgd_opt_base_learning_rate",
                          "opt_learning_rate_warmup_epochs", "sgd_opt_learning_rate_decay_steps",
                          "sgd_opt_momentum", "sgd_opt_weight_decay", "model_bn_span", "init_stop",
                          "run_start", "block_start", "epoch_start 1"));
  log_.Step({.epoch = 0});
  log_.Step({.epoch = 0, .ends_epoch = true});
  log_.Step({.epoch = 1, .ends_epoch = true, .is_last = true});
  log_.EndTraining({});
  EXPECT_THAT(Keys(), ElementsAre("epoch_stop 1", "epoch_start 2", "epoch_stop 2", "block_stop"));
  log_.StartEvaluation({.epoch = 1});
  log_.EndEvaluation({.epoch = 1, .top1 = 0.75863});
  EXPECT_THAT(out_.str(), HasSubstr("\"key\": \"eval_accuracy\", \"value\": 0.75863"));
  EXPECT_THAT(Keys(), ElementsAre("eval_start 2", "eval_accuracy 2", "eval_stop 2"));
  log_.EndRun(true);
  EXPECT_THAT(out_.str(), HasSubstr("\"key\": \"run_stop\", \"value\": null, \"metadata\": "
                                    "{\"status\": \"success\"}"));
}

TEST_F(MlLogTest, HasWhatATrainingIsToldInItsOwnPlaces) {
  log_.StartTraining({.seed = 7,
                      .batch_per_rank = 256,
                      .global_batch = 1024,
                      .train_samples = 1281167,
                      .eval_samples = 50000,
                      .base_learning_rate = 1.024,
                      .warmup_epochs = 8,
                      .decay_steps = 62550,
                      .momentum = 0.875,
                      .weight_decay = 3.0517578125e-05,
                      .first_epoch = 10,
                      .epochs = 50});
  for (const char* part :
       {"\"seed\", \"value\": 7,", "\"global_batch_size\", \"value\": 1024,",
        "\"model_bn_span\", \"value\": 256,", "\"train_samples\", \"value\": 1281167,",
        "\"eval_samples\", \"value\": 50000,", "\"opt_name\", \"value\": \"sgd\",",
        "\"sgd_opt_base_learning_rate\", \"value\": 1.024,",
        "\"opt_learning_rate_warmup_epochs\", \"value\": 8,",
        "\"sgd_opt_learning_rate_decay_steps\", \"value\": 62550,",
        "\"sgd_opt_momentum\", \"value\": 0.875,",
        "\"sgd_opt_weight_decay\", \"value\": 3.0517578125e-05,",
        // Epochs count from 1: the eleventh is the first of the forty that are left.
        "\"block_start\", \"value\": null, \"metadata\": "
        "{\"first_epoch_num\": 11, \"epoch_count\": 40}",
        "\"epoch_start\", \"value\": null, \"metadata\": {\"epoch_num\": 11}"}) {
    EXPECT_THAT(out_.str(), HasSubstr(part));
  }
}

// The names of MLPerf's closed division, of an optimizer that its rules know.
TEST_F(MlLogTest, HasTheHyperparametersOfLars) {
  log_.StartTraining({.optimizer = "lars",
                      .base_learning_rate = 17,
                      .warmup_epochs = 5,
                      .decay_steps = 6084,
                      .end_learning_rate = 0.0001,
                      .momentum = 0.9,
                      .weight_decay = 2e-4,
                      .epochs = 44});
  for (const char* part :
       {"\"opt_name\", \"value\": \"lars\",", "\"lars_epsilon\", \"value\": 0.0,",
        "\"lars_opt_base_learning_rate\", \"value\": 17.0,",
        "\"lars_opt_end_learning_rate\", \"value\": 0.0001,",
        "\"lars_opt_learning_rate_decay_poly_power\", \"value\": 2,",
        "\"lars_opt_learning_rate_decay_steps\", \"value\": 6084,",
        "\"lars_opt_learning_rate_warmup_epochs\", \"value\": 5,",
        "\"lars_opt_momentum\", \"value\": 0.9,",
        "\"lars_opt_weight_decay\", \"value\": 0.0002,"}) {
    EXPECT_THAT(out_.str(), HasSubstr(part));
  }
  EXPECT_THAT(out_.str(), Not(HasSubstr("sgd_opt")));
}

TEST_F(MlLogTest, ATrainingThatStopsWithinAnEpochClosesWhatIsOpen) {
  log_.StartTraining({.epochs = 3});
  log_.Step({.epoch = 0, .ends_epoch = true});
  Keys();
  log_.EndTraining({});
  EXPECT_THAT(Keys(), ElementsAre("epoch_stop 2", "block_stop"));
  log_.EndRun(false);
  EXPECT_THAT(out_.str(), HasSubstr("{\"status\": \"aborted\"}"));
}

TEST_F(MlLogTest, AnEvaluationWithoutATrainingIsNoRun) {
  Keys();
  log_.StartEvaluation({});
  log_.EndEvaluation({.top1 = 0.5});
  log_.EndRun(true);
  EXPECT_THAT(Keys(), ElementsAre());
}

using Json = nlohmann::ordered_json;

class TrainingJsonTest : public ::testing::Test {
 protected:
  Json Read() const {
    std::ifstream file(directory_.path() / "training.json");
    return Json::parse(file);
  }
  // `steps` of the launch from the `first`-th on, every third of which is displayed; each is of an
  // epoch of five.
  void Steps(std::int64_t first, std::int64_t steps) {
    for (std::int64_t step = first; step < first + steps; ++step) {
      const auto number = static_cast<double>(step);
      log_.Step({.launch_step = step,
                 .epoch = step / 5,
                 .ends_epoch = step % 5 == 4,
                 .is_displayed = step % 3 == 0,
                 .images_per_second = 100 + number,
                 .cross_entropy = 7 - number,
                 .l2_loss = 0.25,
                 .total_loss = 7.25 - number,
                 .learning_rate = 0.5});
    }
  }

  TemporaryDirectory directory_;
  TimePoint now_{std::chrono::seconds(1593597600)};
  std::vector<int> losses_;
  TrainingJson log_{directory_.path() / "training.json",
                    [this](int error) { losses_.push_back(error); }, [this] { return now_; }};
};

std::vector<std::string> KeysOf(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST_F(TrainingJsonTest, HasTheKeysOfNvidiasInTheirOrder) {
  log_.EndTraining({});
  EXPECT_THAT(KeysOf(Read()), ElementsAre("run", "epoch", "iter", "event"));
  EXPECT_THAT(KeysOf(Read()["epoch"]),
              ElementsAre("x", "epoch", "final_cross_entropy", "final_l2_loss", "final_total_loss",
                          "final_learning_rate"));
  EXPECT_THAT(KeysOf(Read()["iter"]), ElementsAre("x", "iteration", "imgs_per_sec", "cross_entropy",
                                                  "l2_loss", "total_loss", "learning_rate"));
}

TEST_F(TrainingJsonTest, HasAListOfIterationsForEachEpoch) {
  Steps(0, 5);
  Steps(5, 5);
  Steps(10, 1);
  log_.EndTraining({});
  const Json iterations = Read()["iter"];
  EXPECT_EQ(iterations["iteration"], Json::parse("[[0, 3], [6, 9], []]"));
  // Counted from the start of the epoch.
  EXPECT_EQ(iterations["x"], Json::parse("[[0, 3], [1, 4], []]"));
  EXPECT_EQ(iterations["imgs_per_sec"], Json::parse("[[100.0, 103.0], [106.0, 109.0], []]"));
  EXPECT_EQ(iterations["cross_entropy"], Json::parse("[[7.0, 4.0], [1.0, -2.0], []]"));
  EXPECT_EQ(iterations["l2_loss"], Json::parse("[[0.25, 0.25], [0.25, 0.25], []]"));
  EXPECT_EQ(iterations["total_loss"], Json::parse("[[7.25, 4.25], [1.25, -1.75], []]"));
  EXPECT_EQ(iterations["learning_rate"], Json::parse("[[0.5, 0.5], [0.5, 0.5], []]"));
  const Json epochs = Read()["epoch"];
  EXPECT_EQ(epochs["x"], Json::parse("[0, 1]"));
  EXPECT_EQ(epochs["epoch"], Json::parse("[0, 1]"));
  EXPECT_EQ(epochs["final_cross_entropy"], Json::parse("[3.0, -2.0]"));
  EXPECT_EQ(epochs["final_l2_loss"], Json::parse("[0.25, 0.25]"));
  EXPECT_EQ(epochs["final_total_loss"], Json::parse("[3.25, -1.75]"));
  EXPECT_EQ(epochs["final_learning_rate"], Json::parse("[0.5, 0.5]"));
}

TEST_F(TrainingJsonTest, IsWrittenWhenAnEpochEndsButNotTooOften) {
  now_ += std::chrono::seconds(4);
  Steps(0, 5);
  EXPECT_FALSE(fs::exists(directory_.path() / "training.json"));
  now_ += std::chrono::seconds(1);
  Steps(5, 5);
  EXPECT_EQ(Read()["epoch"]["x"].size(), 2U);
  now_ -= std::chrono::hours(2);
  Steps(10, 5);
  EXPECT_EQ(Read()["epoch"]["x"].size(), 3U);
  EXPECT_THAT(losses_, ElementsAre());
}

TEST_F(TrainingJsonTest, WhatCannotBeWrittenIsTold) {
  const fs::path partial = directory_.path() / ".training.json.tmp";
  fs::create_directory(partial);
  fs::create_directory(partial.string() + "-" + std::to_string(::getpid()));
  log_.EndTraining({});
  EXPECT_THAT(losses_, ElementsAre(EEXIST));
}

class JobCommentTest : public ::testing::Test {
 protected:
  // So many `seconds` later `steps` are done.
  void Step(std::int64_t steps, int seconds) {
    now_ += std::chrono::seconds(seconds);
    StepMetrics metrics = metrics_;
    metrics.step = steps - 1;
    comment_.Step(metrics);
  }

  TimePoint now_ = TimePoint(std::chrono::hours(24));
  StepMetrics metrics_ = {.total_steps = 25000,
                          .epoch = 2,
                          .epochs = 50,
                          .images_per_second = 365.12,
                          .total_loss = 2.41414,
                          .learning_rate = 0.1};
  std::vector<std::string> comments_;
  JobComment comment_{[this](const std::string& text) { comments_.push_back(text); },
                      [this] { return now_; }};
};

TEST_F(JobCommentTest, SaysHowFarTheTrainingIs) {
  Step(1200, 0);
  Step(1260, 60);
  metrics_.epochs = 0;
  Step(25000, 60);
  EXPECT_THAT(comments_,
              ElementsAre("ddltraind step 1200/25000 epoch 3/50 loss 2.4141 365.1 images/s eta ?",
                          // 23,740 steps are left, of a second each.
                          "ddltraind step 1260/25000 epoch 3/50 loss 2.4141 365.1 images/s eta "
                          "6:35:40",
                          "ddltraind step 25000/25000 loss 2.4141 365.1 images/s eta 0:00:00"));
}

TEST_F(JobCommentTest, IsUpdatedOnceAMinute) {
  Step(1, 0);
  Step(2, 59);
  EXPECT_THAT(comments_, SizeIs(1));
  Step(3, 1);
  EXPECT_THAT(comments_, SizeIs(2));
  Step(4, 59);
  EXPECT_THAT(comments_, SizeIs(2));
  Step(5, 3600);
  EXPECT_THAT(comments_, SizeIs(3));
  Step(6, -7200);  // the clock was set back
  EXPECT_THAT(comments_, SizeIs(4));
}

TEST(CommentOrder, IsThatOfScontrol) {
  EXPECT_THAT(CommentOrder("4711", "step 1, 50 %"),
              ElementsAre("scontrol", "update", "JobId=4711", "Comment=step 1, 50 %"));
}

class BackgroundCommandTest : public ::testing::Test {
 protected:
  void Shell(const std::string& text) { order_->Give({"sh", "-c", text, path_.string()}); }
  void WaitForFile() const {
    while (!fs::exists(path_)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  const TemporaryDirectory directory_;
  const fs::path path_ = directory_ / "file";
  std::vector<std::string> failures_;
  std::optional<BackgroundCommand> order_{
      std::in_place, [this](const std::string& why) { failures_.push_back(why); }};
};

TEST_F(BackgroundCommandTest, IsNotWaitedForAndKilledWhenTheNextComes) {
  Shell("echo > $0; exec sleep 1000");
  WaitForFile();
  Shell("exec sleep 1000");
  EXPECT_THAT(failures_, ElementsAre("sh has not ended"));
  order_.reset();
  EXPECT_THAT(failures_, SizeIs(1));               // what the end cuts short is no failure
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
}

// It reads nothing, and what it prints is lost.
TEST_F(BackgroundCommandTest, OneThatSucceedsIsNotMentionedAndHasTimeAtTheEnd) {
  Shell("cat; echo printed; sleep 0.2; echo > $0");
  order_.reset();
  EXPECT_TRUE(fs::exists(path_));
  EXPECT_THAT(failures_, IsEmpty());
}

TEST_F(BackgroundCommandTest, OneThatFailsIsToldWhenTheNextComes) {
  Shell("exit 3");
  siginfo_t info = {};
  ASSERT_EQ(::waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
  Shell("kill -9 $$");
  EXPECT_THAT(failures_, ElementsAre("sh ended with exit code 3"));
  ASSERT_EQ(::waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
  order_.reset();
  EXPECT_THAT(failures_, ElementsAre("sh ended with exit code 3", "sh was ended by signal 9"));
}

TEST_F(BackgroundCommandTest, SaysWhatCannotBeStarted) {
  // posix_spawn tells why by memory that its child shares, which that of QEMU does not.
  if (tests::IsEmulated()) GTEST_SKIP() << "emulated";
  order_->Give({"/no/such/scontrol"});
  EXPECT_THAT(failures_, ElementsAre(HasSubstr("/no/such/scontrol: No such file")));
}

}  // namespace
}  // namespace trainer
