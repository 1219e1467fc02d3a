// SPDX-License-Identifier: Apache-2.0

#include <stdlib.h>
#include <time.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/formats/event_file.h"
#include "trainer/telemetry/formats/progress.h"
#include "trainer/telemetry/formats/prometheus_file.h"
#include "trainer/telemetry/formats/trace_file.h"
#include "trainer/telemetry/formats/variability_files.h"

namespace trainer {
namespace {

const TimePoint kNow{std::chrono::milliseconds(1593597600500)};

std::string BytesOf(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// The vectors are made by hand from the formats of TFRecord and protobuf, the checksums by the bit
// by bit definition of CRC-32C (tests/e2e/ddltraind/read_logs.py has it).
TEST(EventRecords, AreFramedAndEncodedAsTensorboardReadsThem) {
  EXPECT_EQ(
      VersionRecord(kNow),
      BytesOf("1800000000000000a37f4b2209000020a817bfd7411a0d627261696e2e4576656e743a32cc3970a7"));
  EXPECT_EQ(SessionRecord(kNow, 300),
            BytesOf("100000000000000095fbfe1809000020a817bfd74110ac023a0208017089fd3a"));
  EXPECT_EQ(
      ScalarsRecord(kNow, 5, std::array<Scalar, 2>{{{"a/b", 0.5}, {"c", -2}}}),
      BytesOf("2300000000000000b09f774309000020a817bfd74110052a160a0a0a03612f62150000003f0a080a"
              "016315000000c0f02a2c91"));
}

// In the place of a value that is left out TensorBoard would see none.
TEST(EventRecords, HaveAValueThatIsZero) {
  const std::string record = ScalarsRecord(kNow, 5, std::array<Scalar, 1>{{{"c", 0}}});
  EXPECT_THAT(record, HasSubstr(BytesOf("0a0163"
                                        "1500000000")));
}

TEST(EventFile, BeginsWithTheVersionAndGoesOnWithWhatItIsTold) {
  TemporaryDirectory directory;
  EventFile file(directory.path(), "gpu025", "another one", nullptr, [] { return kNow; });
  EXPECT_THAT(file.path().filename(), HasSubstr("events.out.tfevents.1593597600.gpu025."));
  EXPECT_EQ(tests::TextOf(file.path()), VersionRecord(kNow));
  file.StartTraining({.first_step = 3});
  file.Step({.step = 3});  // is not displayed
  file.EndEvaluation(
      {.step = 4, .top1 = 0.5, .top5 = 0.75, .cross_entropy = 2, .images_per_second = 100});
  const std::array<Scalar, 4> scalars = {{{"evaluation/top1", 0.5},
                                          {"evaluation/top5", 0.75},
                                          {"evaluation/cross_entropy", 2},
                                          {"evaluation/images_per_second", 100}}};
  EXPECT_EQ(tests::TextOf(file.path()),
            VersionRecord(kNow) + SessionRecord(kNow, 3) + ScalarsRecord(kNow, 3, scalars));
  file.Step({.step = 4, .is_displayed = true});
  EXPECT_THAT(tests::TextOf(file.path()), HasSubstr("train/loss_scale"));
}

TEST(EventFile, RejectsADirectoryThatIsNotThereAndAFileThatIs) {
  TemporaryDirectory directory;
  const auto make = [&](const fs::path& place) {
    const auto now = [] { return kNow; };
    const auto call = [&] { EventFile(place, "h", "another --tensorboard_dir", nullptr, now); };
    return tests::Rejection<Error>(EX_OSERR, call, "made");
  };
  EXPECT_THAT(
      make(directory.path() / "x"),
      HasSubstr(": No such file or directory; check it, or give another --tensorboard_dir"));
  EXPECT_EQ(make(directory.path()), "made");
  EXPECT_THAT(make(directory.path()), HasSubstr("File exists"));
}

TEST(IterationDurations, AreThoseOfTheStudysProgram) {
  EXPECT_EQ(DurationsHead(5, 8, 1), "rank = 5, world_size = 8, device_ids = 1\n");
  EXPECT_EQ(IterationDuration(3, 1, 0.25), "\nIteration Duration 3 1 : 0.25\n");
  EXPECT_EQ(IterationDuration(0, 0, 1e-5), "\nIteration Duration 0 0 : 1e-05\n");
}

// Readers take six digits behind the point for granted.
TEST(IterationDurations, TheTimeOfATrainingHasHoursMinutesSeconds) {
  EXPECT_EQ(TrainingTime(62.345678), "\nTraining time: 0:01:02.345678\n");
  EXPECT_EQ(TrainingTime(3600 * 12 + 60 * 34 + 56), "\nTraining time: 12:34:56.000000\n");
  EXPECT_EQ(TrainingTime(59.9999999), "\nTraining time: 0:01:00.000000\n");
}

constexpr const char* kDevice = "Tesla V100-SXM2-16GB (1)";

// As nvprof itself printed them in the study's repository (its out/pagerank_GPU-...csv).
constexpr const char* kTitles =
    R"("Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z",)"
    R"("Registers Per Thread","Static SMem","Dynamic SMem","Size","Throughput","SrcMemType",)"
    R"("DstMemType","Device","Context","Stream","System","Name","Correlation_ID")";

// The readers of the study split at each comma and strip quotes.
std::vector<std::string> CellsOf(const std::string& line) {
  std::vector<std::string> cells;
  std::stringstream text(line + ",");
  for (std::string cell; std::getline(text, cell, ',');) {
    std::erase(cell, '"');
    cells.push_back(cell);
  }
  return cells;
}

TEST(NvprofCsv, BeginsWithWhatReadersSkipTitlesAndUnits) {
  std::stringstream head(NvprofHead(1234, "a program"));
  std::string line;
  std::getline(head, line);
  EXPECT_EQ(line, "==1234== a program");
  std::getline(head, line);
  EXPECT_THAT(line, StartsWith("==1234== "));
  std::getline(head, line);
  EXPECT_EQ(line, kTitles);
  std::getline(head, line);
  EXPECT_EQ(line, "s,ms,,,,,,,,B,B,MB,GB/s,,,,,,,,");
  EXPECT_EQ(CellsOf(line).size(), CellsOf(kTitles).size());
  EXPECT_FALSE(std::getline(head, line));
}

TEST(NvprofCsv, AKernelHasACellForEachTitle) {
  const std::string row = NvprofKernel(kDevice, 0.5266584, 0.0012345678, "volta_sgemm", 42);
  EXPECT_EQ(row,
            "0.526658,1.234568,,,,,,,,,,,,,,\"Tesla V100-SXM2-16GB (1)\",\"1\",\"1\",,"
            "\"volta_sgemm\",42\n");
  EXPECT_EQ(CellsOf(row.substr(0, row.size() - 1)).size(), CellsOf(kTitles).size());
}

TEST(NvprofCsv, NamesHaveNothingThatReadersStumbleOver) {
  const std::string row = NvprofKernel(kDevice, 1, 2, "f(int, \"a\")\n", 1);
  EXPECT_EQ(CellsOf(row.substr(0, row.size() - 1)).size(), CellsOf(kTitles).size());
  EXPECT_EQ(std::count(row.begin(), row.end(), '\n'), 1);
}

TEST(NvprofCsv, AStateHasARowForEachThing) {
  const DeviceState state = {1530, 877, 61, 250'123, 300'000};
  const std::string rows = NvprofState(kDevice, 0.25, state);
  EXPECT_EQ(rows,
            "0.250000,,,,,,,,,,,,,,,\"Tesla V100-SXM2-16GB (1)\",,,\"1530/877\",\"[SM/Memory "
            "Clock (MHz)]\",\n"
            "0.250000,,,,,,,,,,,,,,,\"Tesla V100-SXM2-16GB (1)\",,,\"61\",\"[Temperature (C)]\",\n"
            "0.250000,,,,,,,,,,,,,,,\"Tesla V100-SXM2-16GB (1)\",,,\"250123/300000\","
            "\"[Power/Limit (mW)]\",\n");
  std::stringstream lines(rows);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(CellsOf(line).size(), CellsOf(kTitles).size());
  }
}

TEST(NvprofCsv, WhatIsNotKnownIsLeftOutOrZero) {
  EXPECT_EQ(NvprofState(kDevice, 1, {}), "");
  DeviceState state{.compute_mhz = 2445, .milliwatts = 90'000};
  const std::string rows = NvprofState("CPU cores (0)", 1, state);
  EXPECT_THAT(rows, AllOf(HasSubstr("\"2445/0\""), HasSubstr("\"90000/0\"")));
  EXPECT_THAT(rows, Not(HasSubstr("Temperature")));
}

const std::array<Span, 4> kSpans = {{
    {.begin = 0.25, .end = 0.5, .number = 7, .kind = SpanKind::kForward},
    {.begin = 0.0000125, .end = 0.0000925, .number = 7, .kind = SpanKind::kStep},
    {.begin = 0.3, .end = 0.4, .number = 4096, .kind = SpanKind::kAllReduce},
    {.begin = 0.1, .end = 0.2, .number = 8, .thread = 2, .kind = SpanKind::kImage},
}};

TEST(TraceLines, AreTheEventsInTheirOrderAndTheNamesOfProcessAndThreads) {
  EXPECT_EQ(
      TraceLines(3, "gpu025", kSpans),
      R"({"name": "process_name", "ph": "M", "pid": 3, "tid": 0, "args": {"name": "rank 3 on gpu025"}},
{"name": "thread_name", "ph": "M", "pid": 3, "tid": 0, "args": {"name": "steps"}},
{"name": "step", "cat": "step", "ph": "X", "ts": 12.500, "dur": 80.000, "pid": 3, "tid": 0, "args": {"step": 7}},
{"name": "thread_name", "ph": "M", "pid": 3, "tid": 5, "args": {"name": "input thread 3"}},
{"name": "image", "cat": "input", "ph": "X", "ts": 100000.000, "dur": 100000.000, "pid": 3, "tid": 5, "args": {"step": 8}},
{"name": "thread_name", "ph": "M", "pid": 3, "tid": 1, "args": {"name": "phases"}},
{"name": "forward", "cat": "phase", "ph": "X", "ts": 250000.000, "dur": 250000.000, "pid": 3, "tid": 1, "args": {"step": 7}},
{"name": "thread_name", "ph": "M", "pid": 3, "tid": 2, "args": {"name": "all-reduces"}},
{"name": "all-reduce", "cat": "communication", "ph": "X", "ts": 300000.000, "dur": 100000.000, "pid": 3, "tid": 2, "args": {"bytes": 4096}})");
}

nlohmann::json Parsed(const fs::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

TEST(TraceFile, HasAllRanksInOneObject) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "trace.json";
  TraceFile file(path);
  file.Add(0, "a\"b", kSpans);
  file.Add(1, "c", {});
  EXPECT_FALSE(fs::exists(path));
  ASSERT_EQ(file.Finish(), 0);
  const auto events = Parsed(path).at("traceEvents");
  EXPECT_EQ(events.size(), 10U);
  EXPECT_EQ(events[0]["args"]["name"], "rank 0 on a\"b");
  EXPECT_EQ(events[9]["args"]["name"], "rank 1 on c");
}

TEST(TraceFile, ThatIsNotFinishedIsNotThere) {
  TemporaryDirectory directory;
  { TraceFile(directory.path() / "trace.json").Add(0, "a", kSpans); }
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(TraceFile, TellsWhyItCannotBeWritten) {
  TemporaryDirectory directory;
  EXPECT_EQ(TraceFile(directory.path() / "x" / "trace.json").Finish(), ENOENT);
  fs::create_directory(directory.path() / "trace.json");
  EXPECT_EQ(TraceFile(directory.path() / "trace.json").Finish(), EISDIR);
  EXPECT_FALSE(fs::exists(directory.path() / ".trace.json.tmp"));
}

class PrometheusFileTest : public ::testing::Test {
 protected:
  std::string Text() const { return tests::TextOf(directory_ / "ddltraind-rank-00003.prom"); }
  void Step(std::int64_t steps, double seconds) {
    StepMetrics metrics{.step = steps - 1};
    metrics.epoch = metrics.step / 10;
    metrics.ends_epoch = steps % 10 == 0;
    metrics.cross_entropy = 2.5;
    metrics.l2_loss = 0.25;
    metrics.top1 = 0.125;
    metrics.learning_rate = 1e-5;
    metrics.loss_scale = 1024;
    metrics.skipped = steps == 2;
    metrics.times.step = seconds;
    metrics.times[StepPhase::kExposedAllReduce] = seconds / 4;
    file_.Step(metrics);
  }

  TemporaryDirectory directory_;
  TimePoint now_{std::chrono::milliseconds(1593597600500)};
  std::vector<int> losses_;
  PrometheusFile file_{directory_.path(),
                       {3, "gpu025", "0.1.0"},
                       [this](int error) { losses_.push_back(error); },
                       [this] { return now_; }};
};

TEST_F(PrometheusFileTest, BeginsWithWhatIsKnownAtTheStart) {
  ASSERT_EQ(file_.Start(), 0);
  EXPECT_EQ(Text(),
            "# HELP ddltraind_build_info Version of the program; always 1.\n"
            "# TYPE ddltraind_build_info gauge\n"
            "ddltraind_build_info{rank=\"3\",host=\"gpu025\",version=\"0.1.0\"} 1\n"
            "# HELP ddltraind_running 1 while the program runs, 0 after an orderly end.\n"
            "# TYPE ddltraind_running gauge\n"
            "ddltraind_running{rank=\"3\",host=\"gpu025\"} 1\n"
            "# EOF\n");
}

TEST_F(PrometheusFileTest, HasAStepWithItsUnits) {
  ASSERT_EQ(file_.Start(), 0);
  file_.StartTraining({.global_batch = 1024, .total_steps = 25000});
  Step(1, 0.25);
  const std::string text = Text();
  for (const char* part :
       {"# UNIT ddltraind_step_seconds seconds\n"
        "ddltraind_step_seconds{rank=\"3\",host=\"gpu025\"} 0.25\n",
        "ddltraind_phase_seconds{rank=\"3\",host=\"gpu025\",phase=\"exposed_all_reduce\"} 0.0625\n",
        "# UNIT ddltraind_images_per_second images_per_second\n"
        "ddltraind_images_per_second{rank=\"3\",host=\"gpu025\"} 4096\n",
        "ddltraind_last_step_timestamp_seconds{rank=\"3\",host=\"gpu025\"} 1593597600.5\n",
        "ddltraind_planned_steps{rank=\"3\",host=\"gpu025\"} 25000\n",
        "ddltraind_global_batch_images{rank=\"3\",host=\"gpu025\"} 1024\n",
        "ddltraind_learning_rate{rank=\"3\",host=\"gpu025\"} 1e-05\n",
        "ddltraind_cross_entropy{rank=\"3\",host=\"gpu025\"} 2.5\n",
        "ddltraind_l2_loss{rank=\"3\",host=\"gpu025\"} 0.25\n",
        "ddltraind_top1_ratio{rank=\"3\",host=\"gpu025\"} 0.125\n",
        "ddltraind_loss_scale{rank=\"3\",host=\"gpu025\"} 1024\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, EndsWith("\n# EOF\n"));
}

TEST_F(PrometheusFileTest, IsWrittenAfterTheFirstStepAndThenAtIntervalsWithTheMeansOfThem) {
  ASSERT_EQ(file_.Start(), 0);
  file_.StartTraining({.global_batch = 8, .total_steps = 100});
  Step(1, 4);
  now_ += std::chrono::seconds(4);
  Step(2, 1);
  EXPECT_THAT(Text(), HasSubstr("ddltraind_steps{rank=\"3\",host=\"gpu025\"} 1\n"));
  now_ += std::chrono::seconds(1);
  file_.RolledBack({.total_steps = 90});
  Step(30, 3);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("ddltraind_steps{rank=\"3\",host=\"gpu025\"} 30\n"));
  EXPECT_THAT(text, HasSubstr("ddltraind_finished_epochs{rank=\"3\",host=\"gpu025\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("ddltraind_skipped_steps{rank=\"3\",host=\"gpu025\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("ddltraind_planned_steps{rank=\"3\",host=\"gpu025\"} 90\n"));
  EXPECT_THAT(text, HasSubstr("ddltraind_rollbacks{rank=\"3\",host=\"gpu025\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("ddltraind_step_seconds{rank=\"3\",host=\"gpu025\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("ddltraind_images_per_second{rank=\"3\",host=\"gpu025\"} 4\n"));
}

TEST_F(PrometheusFileTest, AClockThatIsSetBackDoesNotKeepItFromBeingWritten) {
  ASSERT_EQ(file_.Start(), 0);
  file_.StartTraining({.global_batch = 8, .total_steps = 100});
  Step(1, 1);
  now_ -= std::chrono::hours(2);
  Step(2, 1);
  EXPECT_THAT(Text(), HasSubstr("ddltraind_steps{rank=\"3\",host=\"gpu025\"} 2\n"));
}

TEST_F(PrometheusFileTest, EndsWithTheEvaluationAndTheLastMeans) {
  ASSERT_EQ(file_.Start(), 0);
  file_.StartTraining({.global_batch = 8, .total_steps = 1});
  Step(1, 2);
  file_.EndEvaluation(
      {.top1 = 0.75863, .top5 = 0.5, .cross_entropy = 1.5, .images_per_second = 10});
  file_.End();
  const std::string text = Text();
  for (const char* part : {"ddltraind_running{rank=\"3\",host=\"gpu025\"} 0\n",
                           "ddltraind_step_seconds{rank=\"3\",host=\"gpu025\"} 2\n",
                           "ddltraind_evaluation_top1_ratio{rank=\"3\",host=\"gpu025\"} 0.75863\n",
                           "ddltraind_evaluation_top5_ratio{rank=\"3\",host=\"gpu025\"} 0.5\n",
                           "ddltraind_evaluation_cross_entropy{rank=\"3\",host=\"gpu025\"} 1.5\n",
                           "ddltraind_evaluation_images_per_second{rank=\"3\",host=\"gpu025\"} "
                           "10\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST_F(PrometheusFileTest, EscapesTheValuesOfLabels) {
  PrometheusFile file(directory_.path(), {3, "a\"b\\c\nd", "0"}, [](int) {});
  ASSERT_EQ(file.Start(), 0);
  EXPECT_THAT(Text(), HasSubstr("host=\"a\\\"b\\\\c\\nd\"} 1\n"));
}

TEST_F(PrometheusFileTest, WhatCannotBeWrittenIsToldOnceAndTheOldTextStays) {
  ASSERT_EQ(file_.Start(), 0);
  const std::string before = Text();
  const fs::path partial = directory_.path() / ".ddltraind-rank-00003.prom.tmp";
  const fs::path other = partial.string() + "-" + std::to_string(::getpid());
  const auto block = [&] { return fs::create_directory(partial) && fs::create_directory(other); };
  ASSERT_TRUE(block());
  file_.End();
  file_.End();
  EXPECT_THAT(losses_, ElementsAre(EEXIST));
  EXPECT_EQ(Text(), before);
  EXPECT_EQ(file_.Start(), EEXIST);
  fs::remove(partial);
  fs::remove(other);
  file_.End();
  EXPECT_THAT(Text(), HasSubstr("ddltraind_running{rank=\"3\",host=\"gpu025\"} 0\n"));
  ASSERT_TRUE(block());
  file_.End();
  EXPECT_THAT(losses_, ElementsAre(EEXIST, EEXIST));
}

TEST_F(PrometheusFileTest, LeavesNothingBesideTheFile) {
  PrometheusFile in_a_place_that_is_a_directory(directory_.path(), {4, "h", "0"}, [](int) {});
  fs::create_directory(in_a_place_that_is_a_directory.path());
  EXPECT_EQ(in_a_place_that_is_a_directory.Start(), EISDIR);
  ASSERT_EQ(file_.Start(), 0);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory_.path())) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names,
              UnorderedElementsAre("ddltraind-rank-00003.prom", "ddltraind-rank-00004.prom"));
}

class ProgressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  Progress Make(const ProgressOptions& options) {
    return Progress(options, line_, [this] { return now_; });
  }
  // After `steps` of them.
  static StepMetrics At(std::int64_t steps) {
    return {.step = steps - 1,
            .total_steps = 1000,
            .epoch = 2,
            .epochs = 50,
            .images_per_second = 365.14,
            .total_loss = 2.41409,
            .learning_rate = 0.1024};
  }
  std::string Take() {
    std::string text = out_.str();
    out_.str("");
    return text;
  }
  TimePoint now_{std::chrono::seconds(1605627653)};
  std::ostringstream out_;
  RedrawnLine line_{out_};
};

TEST_F(ProgressTest, PrintsOneLinePerIntervalToAFile) {
  Progress progress = Make({});
  progress.Step(At(100));
  EXPECT_EQ(Take(),
            "2020-11-17T15:40:53+00:00 epoch 3/50 step 100/1000 365.1 images/s loss 2.4141 "
            "lr 0.1024 eta ?\n");
  now_ += std::chrono::seconds(9);
  progress.Step(At(109));
  EXPECT_EQ(Take(), "");
  now_ += std::chrono::seconds(1);
  progress.Step(At(110));  // ten steps took ten seconds
  EXPECT_EQ(Take(),
            "2020-11-17T15:41:03+00:00 epoch 3/50 step 110/1000 365.1 images/s loss 2.4141 "
            "lr 0.1024 eta 0:14:50\n");
}

TEST_F(ProgressTest, GoesOnWhereTheClockIsSetBack) {
  Progress progress = Make({});
  progress.Step(At(100));
  Take();
  now_ -= std::chrono::hours(1);
  progress.Step(At(101));
  EXPECT_THAT(Take(), HasSubstr("step 101/1000"));
  progress.Step(At(102));
  EXPECT_EQ(Take(), "");
}

TEST_F(ProgressTest, AlwaysPrintsTheLastStep) {
  Progress progress = Make({});
  progress.Step(At(999));
  Take();
  StepMetrics last = At(1000);
  last.epoch = 50;
  progress.Step(last);
  EXPECT_THAT(Take(), HasSubstr("epoch 50/50 step 1000/1000"));
}

TEST_F(ProgressTest, ShowsNoEpochWhenTheRunIsCountedInSteps) {
  Progress progress = Make({});
  StepMetrics state = At(1);
  state.epochs = 0;
  progress.Step(state);
  EXPECT_THAT(Take(), HasSubstr("+00:00 step 1/1000 "));
}

TEST_F(ProgressTest, NeverWritesACarriageReturnToAFile) {
  Progress progress = Make({.interval_seconds = 0});
  for (int step = 1; step <= 1000; ++step) progress.Step(At(step));
  line_.End();
  EXPECT_THAT(out_.str(), AllOf(Not(HasSubstr("\r")), Not(HasSubstr("\x1b"))));
}

TEST_F(ProgressTest, RedrawsOnATerminal) {
  int columns = 40;
  Progress progress = Make({.terminal = true, .columns = [&] { return columns; }});
  progress.Step(At(500));
  EXPECT_EQ(Take(), "\r[======>     ] epoch 3/50 step 500/1000\x1b[K");
  progress.Step(At(501));
  EXPECT_EQ(Take(), "");
  // Made narrower, wider, and narrower than a bar.
  for (const int now : {30, 60, 5}) {
    columns = now;
    progress.Step(At(1000));
    EXPECT_EQ(Take().size(), std::string("\r\x1b[K").size() + static_cast<std::size_t>(now) - 1);
  }
  line_.End();
  EXPECT_EQ(Take(), "\n");
}

TEST_F(ProgressTest, UsesColorOnlyWhenAsked) {
  Progress progress = Make({.terminal = true, .color = true, .columns = [] { return 40; }});
  progress.Step(At(500));
  EXPECT_THAT(Take(), StartsWith("\r\x1b[32m["));
}

}  // namespace
}  // namespace trainer
