// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/log_reader.h"

#include "tests/bench/report/report_test_directory.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

class ReadRunLogTest : public ReportDirectoryTest {
 protected:
  RunRecord Read(const std::string& text, int skip_steps = 0) {
    RunRecord run;
    ReadRunLog(Write("log.json", text), skip_steps, run, diagnostics_);
    return run;
  }
  static std::vector<double> Steps(const RunRecord& run) {
    std::vector<double> steps;
    for (const SeriesPoint& point : run.measures.seconds_per_image.points()) {
      steps.push_back(point.x);
    }
    return steps;
  }
};

TEST_F(ReadRunLogTest, ReadsARun) {
  const RunRecord run = Read(
      LoggedOptions(R"("mode": "train", "batch_size": 8)") +
      LoggedRun(R"("program": "ddltraind 0.1.0", "ranks": 2)") + LoggedSpeed(20, "100.0", "2.5") +
      LoggedSpeed(21, "50.0", "2.25") +
      R"(DLLL {"timestamp": "102.0", "type": "LOG", "step": [], "data": {"train_throughput": 66.0}})"
      "\n"
      R"(DLLL {"timestamp": "103.0", "type": "LOG", "step": [], "data": {"top1_accuracy": 0.5, "top5_accuracy": 0.75, "eval_loss": 1.5, "eval_throughput": 300.0}})"
      "\n");
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(run.launches, 1);
  EXPECT_EQ(run.ranks, 2);
  EXPECT_EQ(SettingOf(run.settings, "batch_size"), "8");
  EXPECT_EQ(SettingOf(run.environment, "program"), "ddltraind 0.1.0");
  EXPECT_EQ(run.began, "2026-11-23 10:00:00");
  EXPECT_EQ(run.seconds, 2.5);
  EXPECT_THAT(Steps(run), ElementsAre(20, 21));
  EXPECT_DOUBLE_EQ(run.measures.seconds_per_image_statistics.Sample().mean, 0.015);
  EXPECT_EQ(run.measures.last_step, 21);
  EXPECT_EQ(run.measures.last_cross_entropy, 2.25);
  EXPECT_EQ(run.train_throughput, 66);
  EXPECT_EQ(run.evaluation.top1, 0.5);
  EXPECT_EQ(run.evaluation.top5, 0.75);
  EXPECT_EQ(run.evaluation.loss, 1.5);
  EXPECT_EQ(run.evaluation.images_per_second, 300);
}

TEST_F(ReadRunLogTest, ReadsWhatARunPrinted) {
  const RunRecord run = Read(
      "some words\n"
      "DLL 2020-07-01 10:00:00.123456 - PARAMETER mode : train  batch_size : 8 \n"
      ":::NVLOGv0.2.3 resnet 1.5 (runner.py:373) Num GPUs: 4\n"
      ":::NVLOGv0.2.3 resnet 1.5 (runner.py:374) Per-GPU Batch Size: 8\n"
      "DLL 2020-07-01 10:00:00.223456 - (0, 20) imgs_per_sec : 100.0  cross_entropy : 2.5  "
      "l2_loss : nan \n"
      "DLL 2020-07-01 10:00:00.323456 - (0, 21) imgs_per_sec : 100.0  cross_entropy : nan \n"
      "DLL 2020-07-01 10:00:00.323456 - () train_throughput : 99.5 \n");
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(run.ranks, 4);
  EXPECT_EQ(SettingOf(run.settings, "batch_size"), "8");
  EXPECT_THAT(Steps(run), ElementsAre(20, 21));
  EXPECT_EQ(run.measures.strange_losses, 1);
  EXPECT_EQ(run.measures.last_cross_entropy, 2.5);
  EXPECT_EQ(run.train_throughput, 99.5);
}

TEST_F(ReadRunLogTest, LeavesOutTheFirstStepsOfEachLaunch) {
  const std::string launch = LoggedOptions(R"("batch_size": 8)");
  const RunRecord run = Read(launch + LoggedSpeed(20, "1.0", "1") + LoggedSpeed(21, "1.0", "1") +
                                 LoggedSpeed(22, "1.0", "1") + launch +
                                 LoggedSpeed(40, "1.0", "1") + LoggedSpeed(41, "1.0", "1"),
                             1);
  EXPECT_EQ(run.launches, 2);
  EXPECT_THAT(Steps(run), ElementsAre(21, 22, 41));
}

TEST_F(ReadRunLogTest, BeginsAnewWithOtherRanksOrAnotherBatch) {
  const std::string first = LoggedOptions(R"("batch_size": 8)") + LoggedRun(R"("ranks": 2)") +
                            LoggedSpeed(20, "1.0", "1");
  const RunRecord other_ranks = Read(first + LoggedOptions(R"("batch_size": 8)") +
                                     LoggedRun(R"("ranks": 4)") + LoggedSpeed(30, "2.0", "1"));
  EXPECT_THAT(Steps(other_ranks), ElementsAre(30));
  EXPECT_EQ(other_ranks.ranks, 4);
  const RunRecord other_batch =
      Read(first + LoggedOptions(R"("batch_size": 16)") + LoggedSpeed(30, "2.0", "1"));
  EXPECT_THAT(Steps(other_batch), ElementsAre(30));
  EXPECT_THAT(told_,
              ElementsAre(HasSubstr("log.json:5: a launch with 4 ranks instead of 2 begins"),
                          HasSubstr("log.json:4: a launch with batch_size=16 instead of 8")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_OK);
}

TEST_F(ReadRunLogTest, BeginsAnewWithOtherBatchesOfAStep) {
  const RunRecord run =
      Read(LoggedOptions(R"("batch_size": 8)") + LoggedSpeed(20, "1.0", "1") +
           LoggedOptions(R"("batch_size": 8, "accumulate": 1)") + LoggedSpeed(21, "1.0", "1") +
           LoggedOptions(R"("batch_size": 8, "accumulate": 2)") + LoggedSpeed(30, "2.0", "1"));
  EXPECT_THAT(Steps(run), ElementsAre(30));
  EXPECT_THAT(told_,
              ElementsAre(HasSubstr("log.json:5: a launch with accumulate=2 instead of 1 begins")));
}

TEST_F(ReadRunLogTest, BeginsAnewWithAnotherStepInWhatRunsPrinted) {
  const auto launch = [](const std::string& batch, const std::string& batches, int step) {
    return "DLL 2020-07-01 10:00:00.1 - PARAMETER mode : train" + batches +
           " \n:::NVLOGv0.2.3 resnet 1.5 (runner.py:373) Num GPUs: 4\n"
           ":::NVLOGv0.2.3 resnet 1.5 (runner.py:374) Per-GPU Batch Size: " +
           batch + "\nDLL 2020-07-01 10:00:00.2 - (0, " + std::to_string(step) +
           ") imgs_per_sec : 100.0  cross_entropy : 2.5 \n";
  };
  const RunRecord other_batch =
      Read(launch("8", "", 20) + launch("8", "", 21) + launch("16", "", 22));
  EXPECT_THAT(Steps(other_batch), ElementsAre(22));
  EXPECT_EQ(SettingOf(other_batch.settings, "batch_size"), "16");
  const RunRecord other_batches =
      Read(launch("8", "  accumulate : 2", 20) + launch("8", "  accumulate : 4", 21));
  EXPECT_THAT(Steps(other_batches), ElementsAre(21));
  EXPECT_EQ(SettingOf(other_batches.settings, "accumulate"), "4");
  EXPECT_THAT(told_,
              ElementsAre(HasSubstr("log.json:11: a launch with batch_size=16 instead of 8 begins"),
                          HasSubstr("log.json:5: a launch with accumulate=4 instead of 2 begins")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_OK);
}

TEST_F(ReadRunLogTest, UsesHalfALog) {
  const std::string whole =
      LoggedOptions(R"("batch_size": 8)") + LoggedSpeed(20, "1.0", "1") + LoggedSpeed(21, "1", "1");
  const RunRecord run = Read(whole.substr(0, whole.size() - 10));
  EXPECT_TRUE(run.is_torn);
  EXPECT_THAT(Steps(run), ElementsAre(20));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("log.json:3: the log ends within this line")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_OK);
}

TEST_F(ReadRunLogTest, NamesTheFirstLinesThatAreWrongAndCountsTheOthers) {
  std::string text = LoggedSpeed(20, "1.0", "1") + "DLLL caf\xE9\n" + LoggedSpeed(21, "0.0", "1") +
                     LoggedSpeed(-1, "1.0", "1") + LoggedSpeed(22, "Infinity", "1");
  for (int i = 0; i < 1000; ++i) text += "DLLL {\n";
  text += "DLLL {\"a\": \"" + std::string(70'000, 'x') + "\"}\n";
  const RunRecord run = Read(text + LoggedSpeed(23, "1.0", "1"));
  EXPECT_THAT(Steps(run), ElementsAre(20, 23));
  EXPECT_THAT(told_, ElementsAre(HasSubstr(":2: it has bytes that are no UTF-8"),
                                 HasSubstr(":3: imgs_per_sec is no speed above 0"),
                                 HasSubstr(":4: the number of the step is below 0"),
                                 HasSubstr(":5: imgs_per_sec is no speed above 0"),
                                 HasSubstr(":6: what stands behind DLLL is no JSON object"),
                                 HasSubstr("log.json: 1000 more lines cannot be used")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_DATAERR);
}

TEST_F(ReadRunLogTest, NamesALogOfAnotherKindAndOneThatIsNotThere) {
  Read("time,value\n1,2\n");
  EXPECT_THAT(told_, ElementsAre(HasSubstr("log.json: it has no line of DLLogger's")));
  Read("");
  EXPECT_THAT(told_, SizeIs(2));
  RunRecord run;
  EXPECT_THROW(ReadRunLog(directory_ / "none", 0, run, diagnostics_), trainer::Error);
}

std::string RejectionOf(const std::string& text) {
  return tests::Rejection<trainer::Error>(EX_DATAERR, [&] { ParseLoggerLine(text); });
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
  EXPECT_THAT(RejectionOf("DLLL {\"type\": \"LOG\", \"st"), HasSubstr("no JSON object"));
  EXPECT_THAT(RejectionOf("DLLL [1]"), HasSubstr("no JSON object"));
  EXPECT_THAT(RejectionOf("DLLL {\"type\": \"LOG\", \"step\": [0, 1]}"),
              HasSubstr("data is missing"));
  EXPECT_THAT(RejectionOf("DLLL {\"type\": \"caf\xE9\"}"), HasSubstr("no UTF-8"));
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
