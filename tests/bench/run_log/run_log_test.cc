// SPDX-License-Identifier: Apache-2.0

#include <sys/resource.h>
#include <sys/stat.h>

#include <tuple>

#include "bench/run_log/log_entry.h"
#include "bench/run_log/log_lines.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::Eq;
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

TEST(MicrosecondsOf, RejectsWhatIsNoTime) {
  for (const std::string text :
       {"", "2020-07-01", "2020-07-01 10:00:00", "2020-07-01T10:00:00.1", "2020-07-01 10:00:00.",
        "2020-13-01 10:00:00.1", "2021-02-29 10:00:00.1", "2020-07-01 24:00:00.1",
        "2020-07-01 10:60:00.1", "2020-07-01 10:00:62.1", "20-07-01 10:00:00.1"}) {
    EXPECT_EQ(MicrosecondsOf(text), std::nullopt) << text;
  }
}

class LogLinesTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }

  void Append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  // (text, number, is_whole, is_cut) of each line.
  using Read = std::tuple<std::string, std::int64_t, bool, bool>;
  std::vector<Read> ReadAll() {
    std::vector<Read> all;
    LogLines lines(path_);
    for (LogLine line; lines.Next(line);) {
      all.emplace_back(line.text, line.number, line.is_whole, line.is_cut);
    }
    return all;
  }

  int RejectionCode() {
    try {
      ReadAll();
    } catch (const trainer::Error& error) {
      message_ = error.what();
      return error.exit_code();
    }
    return 0;
  }

  const TemporaryDirectory directory_;
  const fs::path path_ = directory_ / "log";
  std::string message_;
};

TEST_F(LogLinesTest, NumbersLinesAndTellsTheTornOne) {
  Write("one\n\nthree");
  EXPECT_THAT(ReadAll(), ElementsAre(Read("one", 1, true, false), Read("", 2, true, false),
                                     Read("three", 3, false, false)));
}

TEST_F(LogLinesTest, AnEmptyFileHasNoLine) {
  Write("");
  EXPECT_THAT(ReadAll(), ElementsAre());
}

TEST_F(LogLinesTest, BytesStayAsTheyAre) {
  Write(std::string("\xff\0\r\n", 4));
  EXPECT_THAT(ReadAll(), ElementsAre(Read(std::string("\xff\0\r", 3), 1, true, false)));
}

// A line may lie on both sides of a read, and fill it.
TEST_F(LogLinesTest, LinesOfEveryLengthComeWhole) {
  std::string text;
  std::vector<Read> expected;
  std::int64_t number = 0;
  for (const std::size_t length :
       {kMaxLineBytes - 1, kMaxLineBytes, kMaxLineBytes, std::size_t{1}, kMaxLineBytes - 7,
        kMaxLineBytes, kMaxLineBytes - 2, std::size_t{0}, kMaxLineBytes}) {
    const std::string line(length, static_cast<char>('a' + number));
    text += line + "\n";
    expected.emplace_back(line, ++number, true, false);
  }
  Write(text);
  EXPECT_EQ(ReadAll(), expected);
}

TEST_F(LogLinesTest, ALongLineIsCutAndTheNextOneIsRight) {
  Write(std::string(kMaxLineBytes + 1, 'x') + "\n" + std::string(5 * kMaxLineBytes, 'y') + "\nz\n");
  const std::vector<Read> all = ReadAll();
  EXPECT_THAT(all, ElementsAre(Read(std::string(kMaxLineBytes, 'x'), 1, true, true),
                               Read(std::string(kMaxLineBytes, 'y'), 2, true, true),
                               Read("z", 3, true, false)));
}

TEST_F(LogLinesTest, AGrowingFileHasWholeLinesAlone) {
  Write("one\ntw");
  LogLines lines(path_, /*is_growing=*/true);
  LogLine line;
  ASSERT_TRUE(lines.Next(line));
  EXPECT_EQ(line.text, "one");
  EXPECT_FALSE(lines.Next(line));
  EXPECT_FALSE(lines.Next(line));
  Append("o");
  EXPECT_FALSE(lines.Next(line));
  Append("\n" + std::string(kMaxLineBytes, 'x'));
  ASSERT_TRUE(lines.Next(line));
  EXPECT_EQ(line.text, "two");
  EXPECT_EQ(line.number, 2);
  EXPECT_FALSE(line.is_cut);
  EXPECT_FALSE(lines.Next(line));
  Append("x\n4\n");
  ASSERT_TRUE(lines.Next(line));
  EXPECT_TRUE(line.is_whole);
  EXPECT_TRUE(line.is_cut);
  EXPECT_EQ(line.text.size(), kMaxLineBytes);
  ASSERT_TRUE(lines.Next(line));
  EXPECT_EQ(line.text, "4");
  EXPECT_FALSE(line.is_cut);
}

// 600 MB of one line, without 600 MB of disk.
TEST_F(LogLinesTest, MemoryDoesNotGrowWithTheFile) {
  constexpr std::uintmax_t kBytes = 600'000'000;
  Write("first\n");
  fs::resize_file(path_, kBytes);
  struct rusage before {};
  ::getrusage(RUSAGE_SELF, &before);
  LogLines lines(path_);
  LogLine line;
  ASSERT_TRUE(lines.Next(line));
  ASSERT_TRUE(lines.Next(line));
  EXPECT_TRUE(line.is_cut);
  EXPECT_FALSE(line.is_whole);
  EXPECT_FALSE(lines.Next(line));
  struct rusage after {};
  ::getrusage(RUSAGE_SELF, &after);
  constexpr long kKilobytes = 8 * 1024;
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, kKilobytes);
}

TEST_F(LogLinesTest, RejectsWhatIsNoFileByName) {
  EXPECT_EQ(RejectionCode(), EX_NOINPUT);
  EXPECT_THAT(message_, HasSubstr(path_.string() + ": cannot be read: No such file"));
  fs::create_directory(path_);
  EXPECT_EQ(RejectionCode(), EX_NOINPUT);
  EXPECT_THAT(message_, HasSubstr("it is no regular file"));
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(RejectionCode(), EX_NOINPUT);
}

TEST(IsUtf8, KnowsWhatPythonDecodes) {
  for (const std::string good :
       {"", "abc", "\u00e9", "\u20ac", "\U0001F600", "\uFFFD", "\U0010FFFF", "\x7f", "\u0080",
        "\u07ff", "\u0800", "\ud7ff", "\ue000"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  EXPECT_TRUE(IsUtf8(std::string(1, '\0')));
  for (const std::string bad :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80", "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xe2\x82", "\xe2\x82(", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf0\x9f\x98", "\xf0\x9f(\x80", "\xff",
        "a\xe9z"}) {
    EXPECT_FALSE(IsUtf8(bad)) << ::testing::PrintToString(bad);
  }
}

std::string Line(const std::string& text) {
  return ":::NVLOGv0.2.3 resnet 1605627653.398838758 (training_hooks.py:100) " + text;
}

std::string RejectionOf(RunSteps& steps, const std::string& text) {
  return tests::Rejection<trainer::Error>(EX_DATAERR, [&] { steps.Add(Line(text)); });
}

TEST(RunSteps, HasEveryStepAndTheShapeOfTheRun) {
  RunSteps steps;
  EXPECT_EQ(steps.global_batch(), std::nullopt);
  steps.Add(Line("Num GPUs: 2"));
  steps.Add(Line("Per-GPU Batch Size: 8"));
  for (int i = 0; i < 3; ++i) {
    steps.Add(Line("iteration: " + std::to_string(i)));
    steps.Add(Line("imgs_per_sec: " + std::to_string(10 + i) + ".5"));
    steps.Add("2026-11-22T10:30:00+00:00 step 1/10 14.0 images/s");
    steps.Add(Line("cross_entropy: 7." + std::to_string(i)));
    steps.Add(Line("total_loss: 8.0"));
  }
  EXPECT_EQ(steps.ranks(), 2);
  EXPECT_THAT(steps.global_batch(), Optional(16));
  ASSERT_EQ(steps.steps().size(), 3U);
  EXPECT_EQ(steps.steps()[2].iteration, 2);
  EXPECT_EQ(steps.steps()[2].images_per_second, 12.5);
  EXPECT_EQ(steps.steps()[2].cross_entropy, 7.2);
}

TEST(RunSteps, AStepOfSeveralBatchesHasTheImagesOfAll) {
  RunSteps steps;
  steps.Add("DLL 2020-07-01 10:00:00.1 - PARAMETER mode : train  batch_size : 8  accumulate : 3 ");
  steps.Add(Line("Num GPUs: 2"));
  steps.Add(Line("Per-GPU Batch Size: 8"));
  EXPECT_THAT(steps.global_batch(), Optional(48));
  try {
    steps.Add("DLL 2020-07-01 10:00:00.1 - PARAMETER accumulate : 0 ");
    FAIL();
  } catch (const trainer::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("accumulate is '0'"));
  }
}

TEST(RunSteps, AStepHasTheImagesThatWereAskedForWhereRanksComputeUnequally) {
  RunSteps steps;
  steps.Add(
      "DLL 2020-07-01 10:00:00.1 - PARAMETER mode : train  batch_size : 4  accumulate : 3  "
      "global_batch_size : 32 ");
  steps.Add(Line("Num GPUs: 3"));
  steps.Add(Line("Per-GPU Batch Size: 4"));
  EXPECT_THAT(steps.global_batch(), Optional(32));
}

TEST(RunSteps, AStepIsKnownWhenItsLossHasCome) {
  RunSteps steps;
  steps.Add(Line("iteration: 0"));
  steps.Add(Line("imgs_per_sec: 10.5"));
  EXPECT_TRUE(steps.steps().empty());
}

TEST(RunSteps, LinesOutsideOfAStepDoNotCount) {
  RunSteps steps;
  steps.Add(Line("imgs_per_sec: nan"));
  steps.Add(Line("cross_entropy: x"));
  steps.Add(Line("final_cross_entropy: 7.0"));
  EXPECT_TRUE(steps.steps().empty());
}

TEST(RunSteps, RejectsWhatIsNoStep) {
  RunSteps steps;
  EXPECT_THAT(RejectionOf(steps, "iteration: 1"), HasSubstr("--display_every must be 1"));
  EXPECT_THAT(RejectionOf(steps, "iteration: -1"), HasSubstr("iteration is '-1'"));
  EXPECT_THAT(RejectionOf(steps, "iteration: 0.5"), HasSubstr("iteration is '0.5'"));
  steps.Add(Line("iteration: 0"));
  EXPECT_THAT(RejectionOf(steps, "cross_entropy: 7.0"), HasSubstr("imgs_per_sec"));
  EXPECT_THAT(RejectionOf(steps, "imgs_per_sec: 0.0"), HasSubstr("no speed"));
  EXPECT_THAT(RejectionOf(steps, "imgs_per_sec: -1.0"), HasSubstr("no speed"));
  EXPECT_THAT(RejectionOf(steps, "imgs_per_sec: NaN"), HasSubstr("not numeric"));
  EXPECT_THAT(RejectionOf(steps, "imgs_per_sec"), HasSubstr("not numeric"));
  EXPECT_THAT(RejectionOf(steps, "Num GPUs: 0"), HasSubstr("Num GPUs is '0'"));
  EXPECT_THAT(RejectionOf(steps, "Per-GPU Batch Size: 1e30"), HasSubstr("Batch Size"));
}

}  // namespace
}  // namespace bench
