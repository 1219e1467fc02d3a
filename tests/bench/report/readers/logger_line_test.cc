// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/logger_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/report/readers/python_json.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::HasSubstr;

std::string RefusalOf(const std::string& text) {
  try {
    ParseLoggerLine(text);
  } catch (const trainer::Error& error) {
    EXPECT_EQ(error.exit_code(), EX_DATAERR);
    return error.what();
  }
  return "";
}

TEST(ParseLoggerLine, ReadsAStep) {
  const auto line = ParseLoggerLine(
      "[3] DLLL {\"timestamp\": \"1593597600.5\", \"datetime\": \"2020-07-01 10:00:00.5\", "
      "\"type\": \"LOG\", \"step\": [2, 21], \"data\": {\"imgs_per_sec\": 365.1, "
      "\"cross_entropy\": NaN}}");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->kind, LoggerLineKind::kStep);
  EXPECT_EQ(line->step, 21);
  EXPECT_EQ(line->timestamp, 1593597600.5);
  EXPECT_EQ(line->datetime, "2020-07-01 10:00:00.5");
  EXPECT_EQ(FieldOf(*line, "imgs_per_sec")->number, 365.1);
  EXPECT_EQ(FieldOf(*line, "cross_entropy")->number, std::nullopt);
  EXPECT_EQ(FieldOf(*line, "learning_rate"), nullptr);
}

TEST(ParseLoggerLine, ReadsOptionsInTheirOrder) {
  const auto line = ParseLoggerLine(
      R"(DLLL {"type": "LOG", "step": "PARAMETER", "data": {"mode": "train", "batch_size": 8, "amp": true}})");
  EXPECT_EQ(line->kind, LoggerLineKind::kParameters);
  ASSERT_EQ(line->fields.size(), 3U);
  EXPECT_EQ(line->fields[0].text, "train");
  EXPECT_EQ(line->fields[1].text, "8");
  EXPECT_EQ(line->fields[2].text, "true");
}

TEST(ParseLoggerLine, ReadsTheRestByItsKind) {
  EXPECT_EQ(ParseLoggerLine(R"(DLLL {"type": "LOG", "step": [], "data": {"a": 1}})")->kind,
            LoggerLineKind::kRun);
  EXPECT_EQ(ParseLoggerLine(R"(DLLL {"type": "LOG", "step": [3], "data": {}})")->kind,
            LoggerLineKind::kOther);
  const auto metadata =
      ParseLoggerLine(R"(DLLL {"type": "METADATA", "metric": "run", "metadata": {"ranks": 2}})");
  EXPECT_EQ(metadata->kind, LoggerLineKind::kMetadata);
  EXPECT_EQ(metadata->metric, "run");
  EXPECT_EQ(FieldOf(*metadata, "ranks")->number, 2);
  EXPECT_EQ(ParseLoggerLine("DLL 2020-07-01 10:00:00.1 - () a : 1 "), std::nullopt);
}

TEST(ParseLoggerLine, SaysWhatIsWrong) {
  EXPECT_THAT(RefusalOf("DLLL {\"type\": \"LOG\", \"st"), HasSubstr("no JSON object"));
  EXPECT_THAT(RefusalOf("DLLL [1]"), HasSubstr("no JSON object"));
  EXPECT_THAT(RefusalOf("DLLL {\"type\": \"LOG\", \"step\": [0, 1]}"),
              HasSubstr("data is missing"));
  EXPECT_THAT(RefusalOf("DLLL {\"type\": \"caf\xE9\"}"), HasSubstr("no UTF-8"));
}

TEST(ParsePythonJson, TakesNumbersThatAreNone) {
  EXPECT_EQ(ParsePythonJson("[NaN, -Infinity, Infinity, 1]").dump(), "[null,null,null,1]");
  EXPECT_EQ(ParsePythonJson(R"(["NaN", "a\"NaN", "\\", NaN])").dump(),
            R"(["NaN","a\"NaN","\\",null])");
  EXPECT_TRUE(ParsePythonJson("[NaN").is_discarded());
  EXPECT_TRUE(ParsePythonJson("[1e999]").is_discarded());
}

}  // namespace
}  // namespace bench
