// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/logging/log_dispatcher.h"

#include <nlohmann/json.hpp>

#include "tests/support/directories.h"
#include "tests/support/temporary_directory.h"
#include "tests/trainer/train/thread_ranks.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/backend/measured_backend.h"
#include "trainer/telemetry/formats/dllogger.h"
#include "trainer/telemetry/formats/event_file.h"
#include "trainer/telemetry/formats/mllog.h"
#include "trainer/telemetry/formats/nvlog.h"
#include "trainer/telemetry/formats/progress.h"
#include "trainer/telemetry/formats/prometheus_file.h"
#include "trainer/train/logging/step_profile.h"

namespace trainer {
namespace {

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// An H200 does 80 of these in a second, and moves 32.
constexpr double kFlopPerImage = 989e12 / 80;

// A run of 120 steps of half a second, 8 images each: what the outputs have got of it.
class ReportTest : public testing::Test {
 protected:
  void RunReport(int rank) {
    ThreadCommunicator communicator(world_, rank);
    outputs_.log = MakeLogger(log_text_, rank, "info");
    LogDispatcher report(config_, communicator, outputs_, kFlopPerImage);
    const Schedule schedule = MakeSchedule(config_.schedule, 320, {config_.batch_size, 2});
    report.StartTraining(schedule, {320, 40});
    StepTimer timer;
    StepResult record;
    record.times.step = 0.5;
    record.cross_entropy = 2;
    record.l2_loss = 0.25;
    for (; record.step < schedule.total_steps; ++record.step) {
      record.launch_step = record.step;
      timer.Add(record.times);
      report.Step(record);
    }
    report.EndTraining(timer);
    report.StartEvaluation(120, 40);
    report.EndEvaluation(120, {.top1 = 0.25});
    report.EndRun(true);
  }

  static TrainConfig MakeConfig() {
    TrainConfig config{.batch_size = 4, .seed = 18446744073709551615U};
    config.schedule.num_iter = 3;  // epochs of 40 steps
    return config;
  }

  const TrainConfig config_ = MakeConfig();
  ThreadWorld world_{2};
  std::ostringstream log_text_;
  std::ostringstream nvlog_text_;
  std::ostringstream dll_text_;
  NvLog nvlog_{nvlog_text_};
  DlLogger dllogger_{&dll_text_, nullptr};
  Outputs outputs_;
};

TEST_F(ReportTest, WarnsOfALossAndOfAGradientFarAboveThoseBefore) {
  TrainConfig config = config_;
  config.schedule.num_iter = 4;  // epochs of 40 steps
  ThreadCommunicator communicator(world_, 0);
  outputs_.log = MakeLogger(log_text_, 0, "info");
  LogDispatcher report(config, communicator, outputs_, kFlopPerImage);
  report.StartTraining(MakeSchedule(config.schedule, 320, {config.batch_size, 2}), {320, 40});
  StepResult record;
  record.times.step = 0.5;
  for (; record.step < 135; ++record.step) {
    record.cross_entropy = record.step == 130 ? 5 : 2;
    record.gradient_norm = record.step == 132 ? 7 : record.step == 134 ? 1.5 : 1;
    report.Step(record);
  }
  EXPECT_THAT(
      log_text_.str(),
      AllOf(HasSubstr("warning: step 130: the cross-entropy 5 is far above that of the 128 "
                      "steps before (mean 2, standard deviation 0)"),
            HasSubstr("step 132: the gradient norm 7 is far above"), Not(HasSubstr("step 134"))));
}

TEST_F(ReportTest, NvlogHasEveryTenthIterationAndEveryEpoch) {
  outputs_.logs = {&nvlog_};
  RunReport(0);
  EXPECT_EQ(Count(nvlog_text_.str(), " iteration: "), 12);
  EXPECT_EQ(Count(nvlog_text_.str(), " final_total_loss: 2.25"), 3);
  EXPECT_THAT(nvlog_text_.str(), HasSubstr("imgs_per_sec: 16.0"));  // 8 images in 0.5 s
}

TEST_F(ReportTest, NvlogHasOtherIterationsOnceItIsToldSo) {
  outputs_.logs = {&nvlog_};
  ThreadCommunicator communicator(world_, 0);
  outputs_.log = MakeLogger(log_text_, 0, "info");
  LogDispatcher report(config_, communicator, outputs_, kFlopPerImage);
  report.StartTraining(MakeSchedule(config_.schedule, 320, {config_.batch_size, 2}), {320, 40});
  StepResult record;
  record.times.step = 0.5;
  for (; record.step < 39; ++record.step) {
    if (record.step == 20) report.DisplayEvery(3);
    record.launch_step = record.step;
    report.Step(record);
  }
  EXPECT_EQ(Count(nvlog_text_.str(), " iteration: "), 2 + 6);  // 0, 10; 21, 24, ..., 36
}

TEST_F(ReportTest, APauseIsSaidAndIsNoPartOfWhatIsLeft) {
  std::ostringstream text;
  TimePoint now;
  RedrawnLine line(text);
  Progress progress({}, line, [&] { return now; });
  outputs_.logs = {&progress};
  ThreadCommunicator communicator(world_, 0);
  outputs_.log = MakeLogger(log_text_, 0, "info");
  LogDispatcher report(config_, communicator, outputs_, kFlopPerImage);
  report.StartTraining(MakeSchedule(config_.schedule, 320, {config_.batch_size, 2}), {320, 40});
  StepResult record;
  record.times.step = 0.5;
  report.Step(record);
  report.Pause(1);
  now += std::chrono::seconds(1000);
  report.Resume(1, 990);
  ++record.step;
  report.Step(record);
  EXPECT_THAT(log_text_.str(),
              AllOf(HasSubstr("info: paused after step 1: ddlctl resume continues it"),
                    HasSubstr("info: resumed after step 1, paused for 0:16:30")));
  EXPECT_THAT(text.str(), HasSubstr("step 2/120 16.0 images/s loss 0.0000 lr 0 eta 0:19:40\n"));
}

TEST_F(ReportTest, DlloggerHasAHundredLinesOf120Steps) {
  outputs_.logs = {&dllogger_};
  RunReport(0);
  EXPECT_EQ(Count(dll_text_.str(), " imgs_per_sec : "), 100);
  EXPECT_THAT(dll_text_.str(), HasSubstr("(0, 20) imgs_per_sec : 16.0"));
  EXPECT_THAT(dll_text_.str(), HasSubstr("train_throughput : 16.0"));
}

TEST_F(ReportTest, MllogHasTheEpochsTheSetsAndTheAccuracy) {
  std::ostringstream text;
  MlLog mllog(text, Options{});
  outputs_.logs = {&mllog};
  RunReport(0);
  EXPECT_EQ(Count(text.str(), "\"epoch_start\""), 3);
  EXPECT_EQ(Count(text.str(), "\"epoch_stop\""), 3);
  for (const char* part :
       {"\"seed\", \"value\": 18446744073709551615,", "\"global_batch_size\", \"value\": 8,",
        "\"train_samples\", \"value\": 320,", "\"eval_samples\", \"value\": 40,",
        "\"model_bn_span\", \"value\": 4,",
        // 0.1 * 8 / 256
        "\"sgd_opt_base_learning_rate\", \"value\": 0.003125,",
        "\"eval_accuracy\", \"value\": 0.25, \"metadata\": {\"epoch_num\": 3}",
        "{\"status\": \"success\"}"}) {
    EXPECT_THAT(text.str(), HasSubstr(part));
  }
}

// The step that found no number was the last of its epoch, of which no image is taken any more.
TEST_F(ReportTest, ARollbackEndsTheEpochThatItSkipsTheEndOf) {
  std::ostringstream text;
  MlLog mllog(text, Options{});
  const TemporaryDirectory directory;
  EventFile events(directory.path(), "node", "", nullptr);
  PrometheusFile prometheus(directory.path(), {}, [](int) {});
  ThreadCommunicator communicator(world_, 0);
  outputs_ = {.log = MakeLogger(log_text_, 0, "info"), .logs = {&mllog, &events, &prometheus}};
  LogDispatcher report(config_, communicator, outputs_, kFlopPerImage);
  const Schedule schedule = MakeSchedule(config_.schedule, 320, {config_.batch_size, 2});
  report.StartTraining(schedule, {320, 40});
  report.RolledBack("step 39: the loss is nan", {30, 240}, 39, schedule.From({30, 320, 80}), 2);
  EXPECT_EQ(Count(text.str(), "\"epoch_start\""), 2);
  EXPECT_EQ(Count(text.str(), "\"epoch_stop\""), 1);
  EXPECT_THAT(log_text_.str(),
              HasSubstr("step 39: the loss is nan: rolled back to step 30 (--on_nan=rollback, 2 of "
                        "at most 3 to this checkpoint); the 80 images from there to the end of "
                        "step 39 are skipped, training continues after them in epoch 2"));
  StepResult record{.step = 30};
  record.times.step = 1;
  report.Step(record);
  const auto content = [](const fs::path& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_THAT(content(events.path()), HasSubstr("train/skipped_images"));
  EXPECT_THAT(content(prometheus.path()),
              AllOf(HasSubstr("ddltraind_planned_steps{rank=\"0\",host=\"\"} 110\n"),
                    HasSubstr("ddltraind_rollbacks{rank=\"0\",host=\"\"} 1\n")));
}

// A launch of 80 steps that goes back twice, by half an epoch each time, and so ends with the
// third.
TEST_F(ReportTest, ARollbackOpensNoEpochBehindTheEndOfTheLaunch) {
  std::ostringstream text;
  MlLog mllog(text, Options{});
  ThreadCommunicator communicator(world_, 0);
  outputs_ = {.log = MakeLogger(log_text_, 0, "info"), .logs = {&mllog}};
  TrainConfig config = config_;
  config.schedule.num_iter = 10;
  config.schedule.run_iter = 2;
  LogDispatcher report(config, communicator, outputs_, kFlopPerImage);
  Schedule schedule = MakeSchedule(config.schedule, 320, {config.batch_size, 2});
  ASSERT_EQ(schedule.EndOfLaunch(0), 80);
  report.StartTraining(schedule, {320, 40});
  StepResult record;
  record.times.step = 1;
  for (const Position& next : {Position{60, 640, 160}, Position{60, 800, 320}}) {
    for (record.step = schedule.start.step; record.step < 79; ++record.step) report.Step(record);
    schedule = schedule.From(next);
    report.RolledBack("step 39: the loss is nan", {60, 480}, 79, schedule, 1);
  }
  for (record.step = 60; record.step < 80; ++record.step) report.Step(record);
  EXPECT_EQ(Count(text.str(), "\"epoch_start\""), 3);
  EXPECT_EQ(Count(text.str(), "\"epoch_stop\""), 3);
}

TEST_F(ReportTest, TheLogOfRankZeroHasTheMedians) {
  RunReport(0);
  EXPECT_THAT(log_text_.str(), HasSubstr("median of 120 steps: 16.0 images/s, 500.0 ms"));
}

// 8 images per second on the GPU of each rank.
TEST_F(ReportTest, TheLogOfRankZeroHasTheFiguresOfItsGpu) {
  GpuMeter gpu(tests::BuildDirectory() + "/tests/libfake_energy_nvml.so", "0000:1C:00.0");
  outputs_.gpu = &gpu;
  RunReport(0);
  EXPECT_THAT(log_text_.str(),
              HasSubstr("GPU of rank 0: NVIDIA H200, 23.4 of 150.0 GB in use, MFU 10.0 %\n"));
}

TEST_F(ReportTest, WithoutNvmlTheFiguresOfTheGpuAreLeftOut) {
  GpuMeter gpu("libnvml-of-nobody.so.1", "0000:1C:00.0");
  outputs_.gpu = &gpu;
  RunReport(0);
  EXPECT_THAT(log_text_.str(), Not(HasSubstr("GPU")));
}

TEST_F(ReportTest, OtherRanksSayNothing) {
  RunReport(1);
  EXPECT_THAT(log_text_.str(), Not(HasSubstr("median")));
}

TEST(DescribeRun, IsOfATraining) {
  const std::vector<std::string> rows = DescribeRun(SmallConfig("unused"), 2, 64);
  EXPECT_THAT(rows, Contains(HasSubstr("8 images (2 ranks x 4)")));
  EXPECT_THAT(rows, Contains(HasSubstr("6 in 1 epochs of 8")));
  EXPECT_THAT(rows, Contains(StartsWith("learning rate ")));
}

TEST(DescribeRun, NamesDecayAndOptimizer) {
  TrainConfig config = SmallConfig("unused");
  EXPECT_THAT(DescribeRun(config, 2, 64), Not(Contains(StartsWith("optimizer "))));
  config.optimizer = OptimizerKind::kLars;
  config.schedule.lr_schedule = RateDecay::kPolynomial;
  config.schedule.lr_scaling = RateScaling::kNone;
  const std::vector<std::string> rows = DescribeRun(config, 2, 64);
  EXPECT_THAT(rows, Contains("learning rate     3 after 0 steps of warm-up, polynomial decay to "
                             "0.0001 in 6 steps"));
  EXPECT_THAT(rows, Contains("optimizer         LARS: each tensor's rate goes by its norms"));
}

TEST(DescribeRun, IsOfWhatDoesNotTrain) {
  TrainConfig config = SmallConfig("unused");
  config.mode = RunMode::kEvaluate;
  config.accumulate = 4;                                            // of trainings alone
  const std::vector<std::string> rows = DescribeRun(config, 2, 5);  // less than a batch of 8
  EXPECT_THAT(rows, AllOf(SizeIs(3), Contains(HasSubstr("8 images (2 ranks x 4)"))));
  EXPECT_THAT(rows, Contains("steps             1 for 5 images"));
  config.mode = RunMode::kInferenceBenchmark;
  EXPECT_THAT(DescribeRun(config, 2, 64), Not(Contains(StartsWith("learning rate "))));
}

// Trainings of six steps; the profile is of the third and fourth.
class StepProfileTest : public testing::Test {
 protected:
  TrainResult Train() {
    const auto backend = MakeBackend("reference", {});
    OpRecorder recorder([&] { return backend->MakeEvent(); });
    const auto measured = MakeMeasuredBackend(*backend, recorder);
    OneRank communicator;
    GeneratedSource training({.batch = config_.batch_size, .classes = config_.classes});
    std::ostringstream log_text;
    TrainerDeps deps{
        *measured, communicator, &training, nullptr, {MakeLogger(log_text, 0, "info")}};
    const StepProfileDeps profile = {&recorder, backend->description(), {1e9, 1e9}, true};
    deps.profile = &profile;
    TrainResult result = RunTrainer(config_, deps);
    log_ = log_text.str();
    return result;
  }
  nlohmann::json Document() const {
    std::ifstream file(config_.results_dir / "profile.json");
    return nlohmann::json::parse(file);
  }

  TrainConfig MakeConfig() const {
    TrainConfig config = SmallConfig(directory_.path());
    config.profile = {.first = 3, .count = 2};
    config.results_dir = directory_.path();
    return config;
  }

  TemporaryDirectory directory_;
  TrainConfig config_ = MakeConfig();
  std::string log_;
};

TEST_F(StepProfileTest, IsOfTheStepsThatWereAskedFor) {
  const TrainResult result = Train();
  ASSERT_FALSE(result.profile.empty());
  EXPECT_THAT(result.profile[0], StartsWith("Profile of steps 3 to 4 on rank 0"));
  EXPECT_THAT(result.profile[1], HasSubstr("measured"));
  const auto document = Document();
  EXPECT_EQ(document.at("first_step"), 3);
  EXPECT_EQ(document.at("steps"), 2);
  // Of resnet_tiny: 16 convolutions and batch norms, each forward and backward, the first without
  // the gradient of its image; 9 others.
  double calls = 0;
  std::set<std::string> layers;
  for (const auto& op : document.at("ops")) {
    calls += op.at("calls").get<double>();
    layers.insert(op.at("layer"));
  }
  EXPECT_EQ(calls, 16 + 15 + 16 + 32 + 9);
  EXPECT_THAT(layers, AllOf(Contains("layer1.0.conv1"), Contains("layer2.0.downsample.1")));
  EXPECT_THAT(layers, AllOf(Contains("fc"), Not(Contains(HasSubstr("weight")))));
  EXPECT_LE(document.at("op_seconds"), document.at("step_seconds"));
  EXPECT_THAT(log_, HasSubstr("profile written: " + (directory_.path() / "profile.csv").string()));
  EXPECT_TRUE(fs::exists(directory_.path() / "profile.csv"));
}

TEST_F(StepProfileTest, IsOfThoseOfThemThatTheLaunchMakes) {
  config_.profile = {.first = 6, .count = 10};
  const TrainResult result = Train();
  EXPECT_THAT(result.profile.at(0), StartsWith("Profile of steps 6 to 6 "));
}

TEST_F(StepProfileTest, WarnsWhereThereAreNone) {
  config_.profile = {.first = 7, .count = 2};
  EXPECT_THAT(Train().profile, IsEmpty());
  EXPECT_THAT(log_, HasSubstr("warning: --profile shows nothing: steps 7 to 8 are not among the "
                              "steps 1 to 6 of this launch"));
  EXPECT_FALSE(fs::exists(directory_.path() / "profile.json"));
}

TEST_F(StepProfileTest, AFileThatCannotBeWrittenIsAWarning) {
  config_.results_dir = directory_.path() / "x";
  EXPECT_THAT(Train().profile, Not(IsEmpty()));
  EXPECT_THAT(log_, HasSubstr("profile.csv: cannot be written: No such file or directory; the run "
                              "continues without it"));
}

// Steps of one op, which the test makes itself; the profile is of the third and fourth.
class StepProfileOfStepsTest : public StepProfileTest {
 protected:
  void Compute(std::int64_t step) {
    profile_.Before(step);
    recorder_.Run(op_, nullptr, *stream_, [] {});
  }
  // Of step `first` up to, but not, `end`; each takes `seconds`.
  void Make(std::int64_t first, std::int64_t end, double seconds) {
    for (std::int64_t step = first; step < end; ++step) {
      Compute(step);
      StepResult record{.step = step};
      record.times.step = seconds;
      profile_.After(record);
    }
  }

  const std::unique_ptr<Backend> backend_ = MakeBackend("reference", {});
  const std::unique_ptr<Stream> stream_ = backend_->MakeStream();
  OpRecorder recorder_{[&] { return backend_->MakeEvent(); }};
  const int op_ = recorder_.Add({"conv1", "forward", "1x2", {3, 4}});
  const StepProfileDeps deps_ = {&recorder_, "reference", {1e9, 1e9}, true};
  Network network_{*backend_, {"resnet_tiny", 4, 32, 32, 4, 0}};
  std::ostringstream log_text_;
  StepProfile profile_{config_, &deps_, network_, MakeLogger(log_text_, 0, "info")};
};

TEST_F(StepProfileOfStepsTest, StartsAnewWhereTheTrainingGoesBackOnTheWay) {
  Make(0, 3, 8);
  Compute(3);  // finds a NaN loss
  profile_.RolledBack();
  Make(0, 2, 8);
  EXPECT_FALSE(recorder_.is_on());
  Make(2, 6, 2);
  const auto document = Document();
  EXPECT_EQ(document.at("first_step"), 3);
  EXPECT_EQ(document.at("steps"), 2);
  EXPECT_EQ(document.at("step_seconds"), 2);
  EXPECT_EQ(document.at("ops").at(0).at("calls"), 1) << "in each step";
}

TEST_F(StepProfileOfStepsTest, StartsAnewBehindACheckpointAmongThem) {
  Make(0, 3, 8);
  Compute(3);
  profile_.RolledBack();
  Make(3, 6, 2);
  EXPECT_THAT(profile_.lines().at(0), StartsWith("Profile of steps 4 to 4 "));
}

TEST_F(StepProfileOfStepsTest, IsOfWhatWasMadeWhereTheTrainingEndsByGoingBack) {
  Make(0, 3, 8);
  Compute(3);
  profile_.RolledBack();
  Make(0, 1, 8);
  profile_.End();
  ASSERT_THAT(profile_.lines(), Not(IsEmpty()));
  EXPECT_THAT(profile_.lines()[0], StartsWith("Profile of steps 3 to 3 "));
  EXPECT_EQ(Document().at("ops").at(0).at("calls"), 1) << "not that of the step that failed";
}

TEST_F(StepProfileOfStepsTest, IsOfNoneWhereNoneEnded) {
  Make(0, 2, 8);
  Compute(2);
  profile_.RolledBack();
  profile_.End();
  EXPECT_THAT(profile_.lines(), IsEmpty());
}

TEST_F(StepProfileTest, ChangesNoWeight) {
  Train();
  TemporaryDirectory other;
  RunAlone(SmallConfig(other.path()));
  const auto weights = [](const TemporaryDirectory& directory) {
    return TensorsAt(directory.path(), 6);
  };
  EXPECT_EQ(weights(directory_), weights(other));
}

}  // namespace
}  // namespace trainer
