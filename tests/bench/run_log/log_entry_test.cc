// SPDX-License-Identifier: Apache-2.0

#include "bench/run_log/log_entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace bench {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::IsEmpty;
using ::testing::Optional;

constexpr std::string_view kStep =
    "DLL 2020-07-01 10:00:00.123456 - (0, 21) imgs_per_sec : 365.1  cross_entropy : 7.0  l2_loss : "
    "0.7  total_loss : 7.7  learning_rate : 1e-05 ";

TEST(ParseLogEntry, ReadsAStepOfDll) {
  const LogEntry entry = ParseLogEntry(kStep);
  EXPECT_EQ(entry.kind, EntryKind::kDllStep);
  EXPECT_THAT(entry.step, ElementsAre(0, 21));
  EXPECT_THAT(entry.values,
              ElementsAre(KeyValue("imgs_per_sec", "365.1"), KeyValue("cross_entropy", "7.0"),
                          KeyValue("l2_loss", "0.7"), KeyValue("total_loss", "7.7"),
                          KeyValue("learning_rate", "1e-05")));
  EXPECT_THAT(ValueOf(entry, "total_loss"), Optional(Eq("7.7")));
  EXPECT_EQ(ValueOf(entry, "loss"), std::nullopt);
}

TEST(ParseLogEntry, ReadsUnitsEpochsSummariesAndOptions) {
  const LogEntry units = ParseLogEntry("DLL 2020-07-01 10:00:00.1 - (3,) a : 1 images/s b : 2 ms");
  EXPECT_THAT(units.step, ElementsAre(3));
  EXPECT_THAT(units.values, ElementsAre(KeyValue("a", "1"), KeyValue("b", "2")));
  const LogEntry summary = ParseLogEntry("DLL 2020-07-01 10:00:00.1 - () train_throughput : 42.5 ");
  EXPECT_EQ(summary.kind, EntryKind::kDllStep);
  EXPECT_THAT(summary.step, IsEmpty());
  EXPECT_THAT(summary.values, ElementsAre(KeyValue("train_throughput", "42.5")));
}

TEST(ParseLogEntry, ReadsOptionsWhoseValuesMayHaveBlanks) {
  const std::string line =
      "DLL 2020-07-01 10:00:00.1 - PARAMETER mode : train  accumulate : 4  data_dir : /my data  "
      "export_dir :   use_xla : True ";
  const LogEntry entry = ParseLogEntry(line);
  EXPECT_EQ(entry.kind, EntryKind::kDllOptions);
  EXPECT_THAT(entry.values, ElementsAre(KeyValue("mode", "train"), KeyValue("accumulate", "4"),
                                        KeyValue("data_dir", "/my data"),
                                        KeyValue("export_dir", ""), KeyValue("use_xla", "True")));
  // A value that the line is torn in is none.
  EXPECT_EQ(ValueOf(ParseLogEntry(line.substr(0, line.size() - 1)), "use_xla"), std::nullopt);
  EXPECT_THAT(ParseLogEntry("DLL 2020-07-01 10:00:00.1 - PARAMETER").values, IsEmpty());
}

TEST(FixedGlobalBatch, IsThatOfATraining) {
  EXPECT_THAT(FixedGlobalBatch("train", "32"), Optional(32));
  for (const char* const none : {"", "0", "x", "1.5", "-2", "1e13"}) {
    EXPECT_EQ(FixedGlobalBatch("train", none), std::nullopt) << none;
  }
  EXPECT_EQ(FixedGlobalBatch("inference_benchmark", "32"), std::nullopt);
}

TEST(BatchesOfStep, AreThoseOfATraining) {
  EXPECT_THAT(BatchesOfStep("train", "4"), Optional(4));
  EXPECT_THAT(BatchesOfStep("", ""), Optional(1));
  EXPECT_THAT(BatchesOfStep("inference_benchmark", "4"), Optional(1));
  for (const char* strange : {"0", "-1", "1.5", "many", "1e300"}) {
    EXPECT_EQ(BatchesOfStep("train", strange), std::nullopt) << strange;
  }
}

TEST(ParseLogEntry, ReadsNvlog) {
  const LogEntry value =
      ParseLogEntry(":::NVLOGv0.2.3 resnet 1605627653.398838758 (runner.py:373) Num GPUs: 4");
  EXPECT_EQ(value.kind, EntryKind::kNvlog);
  EXPECT_THAT(value.values, ElementsAre(KeyValue("Num GPUs", "4")));
  const LogEntry text = ParseLogEntry(
      ":::NVLOGv0.2.3 resnet 1605627653.4 (runner.py:365) Starting Model Training...");
  EXPECT_THAT(text.values, ElementsAre(KeyValue("Starting Model Training...", "")));
}

TEST(ParseLogEntry, WhatALauncherPutsInFrontDoesNotMatter) {
  EXPECT_EQ(ParseLogEntry("[1,0]<stdout>:" + std::string(kStep)).step.size(), 2U);
  EXPECT_EQ(ParseLogEntry("0: :::NVLOGv0.2.3 resnet 1.2 (a.py:1) Num GPUs: 4").kind,
            EntryKind::kNvlog);
}

// Whatever a line was torn at, no value is a part of one.
TEST(ParseLogEntry, ATornLineHasWholeValuesOnly) {
  for (std::size_t length = 0; length < kStep.size(); ++length) {
    const LogEntry entry = ParseLogEntry(kStep.substr(0, length));
    const LogEntry whole = ParseLogEntry(kStep);
    ASSERT_LE(entry.values.size(), whole.values.size());
    for (std::size_t i = 0; i < entry.values.size(); ++i) {
      EXPECT_EQ(entry.values[i], whole.values[i]) << length;
    }
  }
}

TEST(ParseLogEntry, OtherLinesAreNone) {
  for (const std::string line :
       {"", "DLL", "DLL ", "DLL 2020-07-01 - (0, 1) a : 1 ",
        "DLL 2020-07-01 10:00:00.1 - 21 a : 1 ", "DLL 2020-07-01 10:00:00.1 - (0, x) a : 1 ",
        "DLL 2020-07-01 10:00:00.1 - (0, 1",
        "DLL 2020-07-01 10:00:00.1 - (0, 9999999999999999999999) a : 1 ", ":::NVLOGv0.2.3",
        ":::NVLOGv0.2.3 resnet 1.2", "step 1/10 14.0 images/s"}) {
    EXPECT_EQ(ParseLogEntry(line).kind, EntryKind::kNone) << line;
  }
}

TEST(NumberOf, TakesFiniteNumbersAlone) {
  EXPECT_THAT(NumberOf("365.1"), Optional(365.1));
  EXPECT_THAT(NumberOf("1e-05"), Optional(1e-5));
  EXPECT_THAT(NumberOf("-3"), Optional(-3.0));
  for (const std::string text : {"", " 1", "1 ", "x", "1x", "nan", "inf", "1e999", "0x10"}) {
    EXPECT_EQ(NumberOf(text), std::nullopt) << text;
  }
}

TEST(MicrosecondsOf, ReadsTheFirstTime) {
  EXPECT_THAT(MicrosecondsOf("1970-01-01 00:00:00.000000"), Optional(0));
  EXPECT_THAT(MicrosecondsOf("at 12 1970-1-2 3:4:5.678 1971-01-01 00:00:00.0"),
              Optional(((24 + 3) * 3600LL + 4 * 60 + 5) * 1'000'000 + 678'000));
  // 2020-02-29 is the 18,321st day; one microsecond before the next one.
  EXPECT_THAT(MicrosecondsOf("2020-02-29 23:59:59.999999"),
              Optional((18321LL + 1) * 86400 * 1'000'000 - 1));
  EXPECT_THAT(MicrosecondsOf(kStep), Optional(1'593'597'600'123'456));
  // Only six digits of a fraction are read.
  EXPECT_THAT(MicrosecondsOf("1970-01-01 00:00:00.1234567"), Optional(123'456));
}

TEST(MicrosecondsOf, RefusesWhatIsNoTime) {
  for (const std::string text :
       {"", "2020-07-01", "2020-07-01 10:00:00", "2020-07-01T10:00:00.1", "2020-07-01 10:00:00.",
        "2020-13-01 10:00:00.1", "2021-02-29 10:00:00.1", "2020-07-01 24:00:00.1",
        "2020-07-01 10:60:00.1", "2020-07-01 10:00:62.1", "20-07-01 10:00:00.1"}) {
    EXPECT_EQ(MicrosecondsOf(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace bench
