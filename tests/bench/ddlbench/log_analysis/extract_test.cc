// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/extract.h"

#include <cstdio>
#include <numeric>
#include <random>

#include "bench/ddlbench/log_analysis/dlperf.h"
#include "tests/bench/ddlbench/unreadable_directory.h"
#include "tests/support/temporary_directory.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::Optional;

// A line as the trainer prints it for a step that ended `microseconds` after ten o'clock.
std::string StepLine(std::int64_t microseconds, const std::string& rate) {
  char time[64];
  const std::int64_t seconds = microseconds / 1'000'000;
  std::snprintf(time, sizeof time, "2020-07-01 10:%02d:%02d.%06d", static_cast<int>(seconds / 60),
                static_cast<int>(seconds % 60), static_cast<int>(microseconds % 1'000'000));
  return std::string("DLL ") + time + " - (0, 20) imgs_per_sec : " + rate +
         "  cross_entropy : 7.0  learning_rate : 0.0 ";
}

// A run of made-up step times, in microseconds; its first 20 steps have no line.
struct FakeRun {
  std::vector<std::int64_t> step_times;
  std::vector<std::string> lines;
};

FakeRun MakeRun(int steps, std::int64_t global_batch, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> jitter(-20'000, 60'000);
  FakeRun run;
  std::int64_t now = 0;
  for (int step = 0; step < steps; ++step) {
    const std::int64_t time = 350'000 + jitter(random);
    now += time;
    run.step_times.push_back(time);
    if (step < 20) continue;
    char rate[64];
    std::snprintf(rate, sizeof rate, "%.17g",
                  static_cast<double>(global_batch) / (static_cast<double>(time) / 1e6));
    run.lines.push_back(StepLine(now, rate));
  }
  return run;
}

double SpeedOf(const FakeRun& run, const SpeedWindow& window, std::int64_t global_batch) {
  SpeedMeter meter(window, global_batch);
  for (const std::string& line : run.lines) meter.Add(line);
  EXPECT_TRUE(meter.is_full());
  return meter.Speed().value();
}

TEST(SpeedMeter, RateIsTheMeanOfTheSpeedsOfTheStepsThatCount) {
  for (const auto& [warmup, steps] :
       {std::pair(20, 120), {20, 30}, {50, 120}, {20, 21}, {119, 120}}) {
    const FakeRun run = MakeRun(150, 256, 7);
    double sum = 0;
    for (int step = warmup; step < steps; ++step) {
      sum += 256e6 / static_cast<double>(run.step_times[static_cast<std::size_t>(step)]);
    }
    // The rounding of each speed moves the mean by half a hundredth at most, that of the mean too.
    EXPECT_NEAR(SpeedOf(run, {SpeedRule::kRate, warmup, steps}, 256), sum / (steps - warmup), 0.01)
        << warmup << " " << steps;
  }
}

TEST(SpeedMeter, TimeIsImagesOverTheTimeBetweenFirstAndLastLine) {
  for (const auto& [warmup, steps] : {std::pair(20, 120), {20, 22}, {50, 120}, {118, 120}}) {
    const FakeRun run = MakeRun(150, 256, 8);
    // The first line that counts is written at the end of its step.
    const double microseconds = static_cast<double>(std::accumulate(
        run.step_times.begin() + warmup + 1, run.step_times.begin() + steps, std::int64_t{0}));
    EXPECT_NEAR(SpeedOf(run, {SpeedRule::kTime, warmup, steps}, 256),
                256e6 * (steps - warmup - 1) / microseconds, 0.005001)
        << warmup << " " << steps;
  }
}

TEST(SpeedMeter, TimeGoesByAllBatchesOfAStep) {
  SpeedMeter meter({SpeedRule::kTime, 20, 22}, 8);
  meter.Add("DLL 2020-07-01 10:00:00.0 - PARAMETER mode : train  accumulate : 3 ");
  meter.Add("2020-07-01 10:00:00.000000 imgs_per_sec : 9.0 ");
  meter.Add("2020-07-01 10:00:02.000000 imgs_per_sec : 9.0 ");
  EXPECT_THAT(meter.Speed(), Optional(12.0));
  SpeedMeter fixed({SpeedRule::kTime, 20, 22}, 8);
  fixed.Add("DLL 2020-07-01 10:00:00.0 - PARAMETER accumulate : 3  global_batch_size : 20 ");
  fixed.Add("2020-07-01 10:00:00.000000 imgs_per_sec : 9.0 ");
  fixed.Add("2020-07-01 10:00:02.000000 imgs_per_sec : 9.0 ");
  EXPECT_THAT(fixed.Speed(), Optional(10.0));
  SpeedMeter strange({SpeedRule::kTime, 20, 22}, 8);
  EXPECT_THROW(strange.Add("DLL 2020-07-01 10:00:00.0 - PARAMETER accumulate : x "),
               trainer::Error);
}

TEST(SpeedMeter, RoundsEachSpeedThenTheMean) {
  SpeedMeter meter({SpeedRule::kRate, 20, 23}, 1);
  for (const std::string rate : {"1.006", "1.006", "1.001"}) meter.Add(StepLine(0, rate));
  EXPECT_THAT(meter.Speed(), Optional(1.01));  // of 1.01, 1.01 and 1; the mean of these is 1.004
}

TEST(SpeedMeter, LinesOfOtherKindsDoNotCount) {
  SpeedMeter meter({SpeedRule::kRate, 20, 21}, 1);
  meter.Add("");
  meter.Add(":::NVLOGv0.2.3 resnet 1.5 (training_hooks.py:101) imgs_per_sec: 999.5");
  meter.Add("imgs_per_sec : 999.5 ");
  meter.Add("step 1/10 14.0 images/s");
  EXPECT_EQ(meter.lines(), 0);
  EXPECT_FALSE(meter.is_full());
  meter.Add("anything imgs_per_sec : 5.5 anything");
  EXPECT_TRUE(meter.is_full());
  meter.Add(StepLine(0, "77.0"));
  EXPECT_EQ(meter.lines(), 1);
  EXPECT_THAT(meter.Speed(), Optional(5.5));
}

TEST(SpeedMeter, TakesTheNumbersThatDlperfTakes) {
  for (const auto& [text, value] : {std::pair("365.1", 365.1), {"1234", 1234.0}, {"3e2", 300.0}}) {
    SpeedMeter meter({SpeedRule::kRate, 20, 21}, 1);
    meter.Add(std::string(" imgs_per_sec : ") + text + " ");
    EXPECT_THAT(meter.Speed(), Optional(value)) << text;
  }
}

TEST(SpeedMeter, RejectsALineWithoutItsNumberOrTime) {
  for (const std::string text : {"36", "1e+16", "nan", "", "365.1x", "-3.5", ".55", "3.", "1:5"}) {
    SpeedMeter meter({SpeedRule::kRate, 20, 21}, 1);
    EXPECT_THROW(meter.Add(" imgs_per_sec : " + text + " "), trainer::Error) << text;
  }
  SpeedMeter torn({SpeedRule::kRate, 20, 21}, 1);
  EXPECT_THROW(torn.Add(" imgs_per_sec : 365.1"), trainer::Error);
  SpeedMeter timeless({SpeedRule::kTime, 20, 22}, 1);
  EXPECT_THROW(timeless.Add("DLL - (0, 20) imgs_per_sec : 365.1 "), trainer::Error);
}

TEST(SpeedMeter, NoTimeBetweenTheLinesIsNoSpeed) {
  for (const std::int64_t second : {0, 1'000'000}) {
    SpeedMeter meter({SpeedRule::kTime, 20, 22}, 1);
    meter.Add(StepLine(1'000'000, "1.5"));
    meter.Add(StepLine(second, "1.5"));
    EXPECT_EQ(meter.Speed(), std::nullopt);
  }
}

// What DLPerf's README shows: speeds of six runs of each case, and what its script made of them.
TEST(SpeedsOf, MakesDlperfsPublishedTableOfItsSpeeds) {
  ModelRuns runs;
  runs[{1, 1}] = {128,
                  {{1, 362.05}, {2, 362.28}, {3, 362.78}, {4, 362.43}, {5, 362.45}, {6, 362.45}}};
  runs[{1, 4}] = {
      128, {{1, 1391.53}, {2, 1392.25}, {3, 1390.17}, {4, 1393.31}, {5, 1389.73}, {6, 1391.03}}};
  runs[{1, 8}] = {
      128, {{1, 2737.81}, {2, 2718.0}, {3, 2715.18}, {4, 2696.33}, {5, 2727.71}, {6, 2725.96}}};
  runs[{2, 8}] = {
      128, {{1, 5097.79}, {2, 5063.02}, {3, 5107.27}, {4, 5018.54}, {5, 5101.06}, {6, 5125.81}}};
  runs[{4, 8}] = {
      128, {{1, 9403.78}, {2, 9574.57}, {3, 9551.9}, {4, 9477.39}, {5, 9342.6}, {6, 9631.24}}};
  const std::vector<CaseSpeed> rows = SpeedsOf(runs);
  EXPECT_EQ(FormatJson({{"r50", rows}}),
            "{\"r50\": {\"1n1g\": {\"average_speed\": 362.41, \"batch_size_per_device\": 128, "
            "\"median_speed\": 362.44, \"speedup\": 1.0}, "
            "\"1n4g\": {\"average_speed\": 1391.34, \"batch_size_per_device\": 128, "
            "\"median_speed\": 1391.28, \"speedup\": 3.84}, "
            "\"1n8g\": {\"average_speed\": 2720.16, \"batch_size_per_device\": 128, "
            "\"median_speed\": 2721.98, \"speedup\": 7.51}, "
            "\"2n8g\": {\"average_speed\": 5085.58, \"batch_size_per_device\": 128, "
            "\"median_speed\": 5099.42, \"speedup\": 14.07}, "
            "\"4n8g\": {\"average_speed\": 9496.91, \"batch_size_per_device\": 128, "
            "\"median_speed\": 9514.64, \"speedup\": 26.25}}}");
  EXPECT_EQ(FormatTable(rows),
            "| node_num | gpu_num | samples/s | speedup | average   | runs | batch |\n"
            "| -------- | ------- | --------- | ------- | --------- | ---- | ----- |\n"
            "| 1        | 1       | 362.44    | 1.00    | 362.41    | 6    | 128   |\n"
            "| 1        | 4       | 1391.28   | 3.84    | 1391.34   | 6    | 128   |\n"
            "| 1        | 8       | 2721.98   | 7.51    | 2720.16   | 6    | 128   |\n"
            "| 2        | 16      | 5099.42   | 14.07   | 5085.58   | 6    | 128   |\n"
            "| 4        | 32      | 9514.64   | 26.25   | 9496.91   | 6    | 128   |\n");
}

TEST(SpeedsOf, TheMedianOfAnOddNumberIsTheMiddleOne) {
  const std::vector<CaseSpeed> rows = SpeedsOf({{Case{1, 1}, {8, {{1, 3.0}, {2, 1.0}, {3, 2.5}}}}});
  EXPECT_EQ(rows[0].median, 2.5);
  EXPECT_EQ(rows[0].average, 2.17);
  EXPECT_EQ(rows[0].runs, 3);
}

TEST(SpeedsOf, WithoutTheCase1n1gThereIsNoSpeedup) {
  const std::vector<CaseSpeed> rows = SpeedsOf({{Case{1, 2}, {8, {{1, 3.0}}}}});
  EXPECT_EQ(rows[0].speedup, std::nullopt);
  EXPECT_EQ(FormatJson({{"r50", rows}}),
            "{\"r50\": {\"1n2g\": {\"average_speed\": 3.0, \"batch_size_per_device\": 8, "
            "\"median_speed\": 3.0}}}");
  EXPECT_THAT(FormatTable(rows), HasSubstr("| 3.00      | -       |"));
}

// Sums in NumPy's order differ from others in the last bit.
TEST(NumpySum, AddsInEightLanesUpTo128AndHalvesBeyond) {
  const double tiny = std::ldexp(1, -53);  // half of what 1 can tell
  // One after the other, 1 + tiny + tiny ... is 1.
  std::vector<double> seven(7, tiny);
  seven[0] = 1;
  EXPECT_EQ(NumpySum(seven), 1.0);
  std::vector<double> eight(8, tiny);
  eight[0] = 1;
  EXPECT_EQ(NumpySum(eight), 1 + 6 * tiny);  // 1 + tiny is 1; two and four of them are not lost
  std::vector<double> sixteen(16, tiny);
  sixteen[0] = 1;
  // Lane 0 is 1 + tiny = 1, as are 1 + 2 tiny of lane 1; the others are not lost.
  EXPECT_EQ(NumpySum(sixteen), 1 + 14 * tiny);
  // What does not fill the lanes is added at the end.
  std::vector<double> nine(9, tiny);
  nine[0] = 1;
  EXPECT_EQ(NumpySum(nine), ((1 + tiny) + 2 * tiny + 4 * tiny) + tiny);
  // 136 = 64 + 72: halves of multiples of eight.
  std::vector<double> many(136, 0);
  many[0] = 1;
  many[64] = tiny;
  many[72] = tiny;
  EXPECT_EQ(NumpySum(many), 1 + 2 * tiny);
  many[64] = 0;
  many[56] = tiny;
  EXPECT_EQ(NumpySum(many), 1.0);
}

TEST(NumpyRound, GoesByTheProductAsNumpyDoes) {
  EXPECT_EQ(NumpyRound(1.015), 1.01);
  EXPECT_EQ(NumpyRound(2.675), 2.68);  // Python's own round says 2.67
  EXPECT_EQ(NumpyRound(0.125), 0.12);
  EXPECT_EQ(NumpyRound(362.4449), 362.44);
}

class ExtractTest : public tests::DirectoryTest {
 protected:
  // A log of `lines` steps that count, all of this speed.
  static std::string Log(int lines, const std::string& speed, int ranks = 1, int batch = 4) {
    std::string text =
        ":::NVLOGv0.2.3 resnet 1.5 (runner.py:373) Num GPUs: " + std::to_string(ranks) +
        "\n:::NVLOGv0.2.3 resnet 1.5 (runner.py:374) Per-GPU Batch Size: " + std::to_string(batch) +
        "\n";
    for (int i = 0; i < lines; ++i) {
      text += "DLL 2020-07-01 10:00:0" + std::to_string(i % 10) + ".000000 - (0, " +
              std::to_string(i) + ") imgs_per_sec : " + speed + "  cross_entropy : 7.0 \n";
    }
    return text;
  }

  std::string RunExtract() {
    options_.directories = {directory_.string()};
    options_.train_batches = 25;
    return Extract(options_, diagnostics_);
  }

  std::string Json(const fs::path& name) { return tests::TextOf(directory_ / name); }

  ExtractOptions options_;
  std::vector<std::string> told_;
  Diagnostics diagnostics_{[this](const std::string& text) { told_.push_back(text); }};
};

TEST_F(ExtractTest, MakesTablesAndJsonOfADirectoryOfLogDirectories) {
  Write("bz4_fp32/1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  Write("bz4_fp32/1n1g/r50_b4_fp32_2.log", Log(5, "20.0"));
  Write("bz4_fp32/1n2g/r50_b4_fp32_1.log", Log(5, "27.0", 2));
  Write("bz4_fp32/1n1g/results/r50_b4_fp32_1/log.json", "");
  Write("bz4_fp16/1n1g/r50_b4_fp16_1.log", Log(5, "3.0"));
  Write("slurm-1_1.out", "");
  const std::string text = RunExtract();
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(diagnostics_.exit_code(), EX_OK);
  EXPECT_THAT(text, HasSubstr("## bz4_fp32: r50\n"));
  EXPECT_THAT(text,
              HasSubstr("| 1        | 2       | 27.00     | 1.80    | 27.00     | 1    | 4 "));
  EXPECT_THAT(text, HasSubstr("## bz4_fp16: r50\n"));
  EXPECT_EQ(Json("result/bz4_fp32_result.json"),
            "{\"r50\": {\"1n1g\": {\"average_speed\": 15.0, \"batch_size_per_device\": 4, "
            "\"median_speed\": 15.0, \"speedup\": 1.0}, \"1n2g\": {\"average_speed\": 27.0, "
            "\"batch_size_per_device\": 4, \"median_speed\": 27.0, \"speedup\": 1.8}}}");
  EXPECT_THAT(Json("result/bz4_fp16_result.json"), HasSubstr("3.0"));
}

TEST_F(ExtractTest, ALogDirectoryItselfMayBeGiven) {
  Write("1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  options_.output_dir = (directory_ / "there").string();
  EXPECT_THAT(RunExtract(), HasSubstr("10.00"));
  EXPECT_THAT(Json("there/" + directory_.filename().string() + "_result.json"), HasSubstr("10.0"));
  EXPECT_FALSE(fs::exists(directory_ / "result"));
}

TEST_F(ExtractTest, ByTimeGoesByTheTimesOfTheLines) {
  Write("1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  options_.rule = "time";
  EXPECT_THAT(RunExtract(), HasSubstr("| 4.00      | 1.00"));  // 4 images in a second
}

TEST_F(ExtractTest, NamesAnEmptyDirectory) {
  EXPECT_THAT(RunExtract(), IsEmpty());
  EXPECT_THAT(told_, ElementsAre(HasSubstr(directory_.string() + ": there is no log")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_DATAERR);
}

TEST_F(ExtractTest, NamesADirectoryThatIsNotThere) {
  fs::remove_all(directory_);
  EXPECT_THAT(RunExtract(), IsEmpty());
  EXPECT_THAT(told_, ElementsAre(HasSubstr(directory_.string() + ": cannot be read")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_NOINPUT);
}

TEST_F(ExtractTest, NamesACaseWithoutLogs) {
  fs::create_directories(directory_ / "1n1g");
  EXPECT_THAT(RunExtract(), IsEmpty());
  EXPECT_THAT(told_, ElementsAre(HasSubstr(directory_.string() + ": there is no log")));
}

TEST_F(ExtractTest, LeavesHalfALogOutAndShowsTheRest) {
  Write("1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  const std::string whole = Log(5, "99.0");
  Write("1n1g/r50_b4_fp32_2.log", whole.substr(0, whole.size() - 1));
  const fs::path half = Write("1n1g/r50_b4_fp32_3.log", Log(2, "99.0"));
  Write("1n1g/r50_b4_fp32_4.log", "");
  EXPECT_THAT(RunExtract(), HasSubstr("| 10.00     | 1    |"));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("r50_b4_fp32_2.log:7: the log ends after 4 lines"),
                                 AllOf(HasSubstr(half.string() + ":4: the log ends after 2 lines"),
                                       HasSubstr("of 5; it is left out")),
                                 HasSubstr("r50_b4_fp32_4.log: the log ends after 0 lines")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_DATAERR);
}

TEST_F(ExtractTest, MoreLinesThanNeededDoNotCount) {
  Write("1n1g/r50_b4_fp32_1.log", Log(5, "10.0") + Log(5, "1000.0") + " imgs_per_sec : x \n");
  EXPECT_THAT(RunExtract(), HasSubstr("| 10.00     | 1    |"));
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(ExtractTest, NamesTheLineThatHasNoNumber) {
  Write("1n1g/r50_b4_fp32_1.log", Log(2, "10.0") + " imgs_per_sec : 1e+16 \n" + Log(5, "10.0"));
  EXPECT_THAT(RunExtract(), IsEmpty());
  EXPECT_THAT(
      told_, ElementsAre(HasSubstr("r50_b4_fp32_1.log:5: imgs_per_sec is not followed by a number"),
                         HasSubstr("there is no log")));
}

TEST_F(ExtractTest, BytesThatAreNoUtf8AreNamedAndDoNoHarm) {
  Write("1n1g/r50_b4_fp32_1.log", "caf\xe9\n\xff\n" + Log(5, "10.0"));
  EXPECT_THAT(RunExtract(), HasSubstr("| 10.00     | 1    |"));
  EXPECT_THAT(told_,
              ElementsAre(AllOf(HasSubstr("note: "), HasSubstr("r50_b4_fp32_1.log:1: bytes"))));
  EXPECT_EQ(diagnostics_.exit_code(), EX_OK);
}

TEST_F(ExtractTest, RunsOfAnotherShapeThanTheirNamesAreLeftOut) {
  Write("1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  Write("1n1g/r50_b4_fp32_2.log", Log(5, "99.0", 2));
  Write("1n1g/r50_b4_fp32_3.log", Log(5, "99.0", 1, 8));
  EXPECT_THAT(RunExtract(), HasSubstr("| 10.00     | 1    |"));
  EXPECT_THAT(
      told_,
      ElementsAre(HasSubstr("r50_b4_fp32_2.log:1: Num GPUs is 2, but the directory's name says 1"),
                  HasSubstr("r50_b4_fp32_3.log:2: Per-GPU Batch Size is 8, but the file's "
                            "name says 4")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_DATAERR);
}

TEST_F(ExtractTest, RunsThatDoNotBelongTogetherAreLeftOut) {
  Write("1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  Write("1n1g/r50_b4_fp16_1.log", Log(5, "20.0"));
  Write("1n1g/r50_b8_fp32_2.log", Log(5, "99.0", 1, 8));
  Write("1n1g/notes.log", "");
  EXPECT_THAT(RunExtract(), HasSubstr("| 20.00     | 1    |"));
  EXPECT_THAT(told_,
              ElementsAre(HasSubstr("notes.log: its name is none such as"),
                          HasSubstr("r50_b4_fp32_1.log: there is another log of r50, repeat 1"),
                          HasSubstr("r50_b8_fp32_2.log: its batch is 8, that of the logs "
                                    "before it 4")));
}

TEST_F(ExtractTest, WithoutTheCase1n1gSpeedupsAreMissing) {
  Write("1n2g/r50_b4_fp32_1.log", Log(5, "10.0", 2));
  EXPECT_THAT(RunExtract(), HasSubstr("| 10.00     | -       |"));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("r50 has no log of 1n1g that can be used")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_OK);
}

TEST_F(ExtractTest, TwoDirectoriesOfOneNameNeedTwoPlaces) {
  Write("a/logs/1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  Write("b/logs/1n1g/r50_b4_fp32_1.log", Log(5, "20.0"));
  options_.directories = {(directory_ / "a").string(), (directory_ / "b").string()};
  options_.output_dir = (directory_ / "out").string();
  options_.train_batches = 25;
  EXPECT_THAT(Extract(options_, diagnostics_), AllOf(HasSubstr("10.00"), HasSubstr("20.00")));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("give each its own --output_dir")));
  EXPECT_THAT(Json("out/logs_result.json"), HasSubstr("10.0"));
}

TEST_F(ExtractTest, TablesAreShownAlsoWhereTheirFileCannotBeWritten) {
  Write("1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  Write("result", "a file in its place");
  EXPECT_THAT(RunExtract(), AllOf(HasSubstr("| 10.00     | 1    |"), Not(HasSubstr("Saving"))));
  EXPECT_THAT(told_, ElementsAre(AllOf(
                         HasSubstr("cannot make the directory " + (directory_ / "result").string()),
                         HasSubstr("; give ddlbench extract --output_dir DIR"))));
  EXPECT_EQ(diagnostics_.exit_code(), EX_OSERR);
}

TEST_F(ExtractTest, NamesALogDirectoryThatCannotBeReadAndShowsTheRest) {
  options_.output_dir = (directory_ / "result").string();
  fs::create_directories(directory_ / "result");
  fs::permissions(directory_ / "result", fs::perms::all);
  Write("a/1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  Write("b/1n1g/r50_b4_fp32_1.log", Log(5, "20.0"));
  const UnreadableDirectory unreadable(directory_ / "a");
  if (!unreadable.works()) GTEST_SKIP() << "every directory can be read here";
  EXPECT_THAT(RunExtract(), HasSubstr("| 20.00     | 1    |"));
  EXPECT_THAT(told_, ElementsAre(HasSubstr((directory_ / "a").string() + ": cannot be read")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_NOINPUT);
}

TEST_F(ExtractTest, NamesACaseThatCannotBeReadAndShowsTheRest) {
  options_.output_dir = (directory_ / "result").string();
  fs::create_directories(directory_ / "result");
  fs::permissions(directory_ / "result", fs::perms::all);
  Write("a/1n1g/r50_b4_fp32_1.log", Log(5, "10.0"));
  Write("a/1n2g/r50_b4_fp32_1.log", Log(5, "20.0", 2));
  const UnreadableDirectory unreadable(directory_ / "a/1n2g");
  if (!unreadable.works()) GTEST_SKIP() << "every directory can be read here";
  EXPECT_THAT(RunExtract(), HasSubstr("| 10.00     | 1    |"));
  EXPECT_THAT(told_, ElementsAre(HasSubstr((directory_ / "a/1n2g").string() + ": cannot be read")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_NOINPUT);
}

TEST(WindowOf, RejectsWindowsWithoutSteps) {
  const auto rejects = [](const std::string& rule, int warmup, int steps) {
    try {
      WindowOf({.rule = rule, .warmup_batches = warmup, .train_batches = steps});
    } catch (const trainer::Error& error) {
      return error.exit_code() == EX_USAGE;
    }
    return false;
  };
  EXPECT_TRUE(rejects("rate", 19, 120));
  EXPECT_TRUE(rejects("rate", 20, 20));
  EXPECT_FALSE(rejects("rate", 20, 21));
  EXPECT_TRUE(rejects("time", 20, 21));
  EXPECT_FALSE(rejects("time", 20, 22));
}

TEST(ParseCase, ReadsNodesAndGpus) {
  EXPECT_THAT(ParseCase("1n1g"), Optional(Case{1, 1}));
  EXPECT_THAT(ParseCase("4n8g"), Optional(Case{4, 8}));
  EXPECT_THAT(ParseCase("16n16g"), Optional(Case{16, 16}));
  EXPECT_EQ(Case(ParseCase("4n8g").value()).ranks(), 32);
}

TEST(ParseCase, RejectsOtherNames) {
  for (const std::string text :
       {"", "result", "1n", "1n1", "n1g", "1ng", "0n1g", "1n0g", "-1n1g", "1n1gg", "1n1g ", " 1n1g",
        "1N1G", "+1n1g", "10000n1g", "99999999999999999999n1g", "1n1g.old", "1g1n"}) {
    EXPECT_EQ(ParseCase(text), std::nullopt) << text;
  }
}

TEST(Case, IsNamedAsItIsRead) { EXPECT_EQ(NameOf({16, 4}), "16n4g"); }

TEST(Case, HasTheOrderOfRanksThenOfNodes) {
  EXPECT_LT((Case{1, 8}), (Case{2, 8}));
  EXPECT_LT((Case{1, 8}), (Case{2, 4}));
  EXPECT_FALSE((Case{2, 4}) < (Case{1, 8}));
  EXPECT_FALSE((Case{1, 8}) < (Case{1, 8}));
  EXPECT_LT((Case{3, 1}), (Case{1, 4}));
}

TEST(FitsDlperf, HasOneDigitOfNodesAndTwoOfGpus) {
  EXPECT_TRUE(FitsDlperf({9, 99}));
  EXPECT_FALSE(FitsDlperf({10, 8}));
  EXPECT_FALSE(FitsDlperf({1, 100}));
}

TEST(ParseRunName, ReadsAllParts) {
  const auto name = ParseRunName("r50_b128_fp32_1.log");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->model, "r50");
  EXPECT_EQ(name->batch, 128);
  EXPECT_EQ(name->precision, "fp32");
  EXPECT_EQ(name->repeat, 1);
  EXPECT_EQ(FileNameOf(*name), "r50_b128_fp32_1.log");
}

TEST(ParseRunName, RejectsOtherNames) {
  for (const std::string text :
       {"", "r50.log", "r50_b128_fp32.log", "r50_b128_fp32_1", "r50_b128_fp32_1.log.part",
        "r50_128_fp32_1.log", "r50_b_fp32_1.log", "r50_b0_fp32_1.log", "_b128_fp32_1.log",
        "r50_b128__1.log", "r50_b128_fp32_.log", "r50_b128_fp32_0.log", "r50_b128_fp32_x.log",
        "r50_b128_fp32_1_2.log", "r50_b1e3_fp32_1.log", "r50_b128_fp32_1.txt", ".log"}) {
    EXPECT_FALSE(ParseRunName(text)) << text;
  }
}

}  // namespace
}  // namespace bench
