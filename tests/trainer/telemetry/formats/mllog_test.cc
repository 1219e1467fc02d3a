// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/mllog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

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
  MlLog log_{out_, {"closed", "Durham", "Bede", "onprem"}, [this] { return now_; }};
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
  log_.StartTraining({.is_lars = true,
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
  EXPECT_THAT(out_.str(), testing::Not(HasSubstr("sgd_opt")));
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

}  // namespace
}  // namespace trainer
