// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/dllogger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include <sstream>

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

}  // namespace
}  // namespace trainer
