// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/support/folders.h"
#include "tests/trainer/temporary_folder.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/telemetry/formats/dllogger.h"
#include "trainer/telemetry/formats/event_file.h"
#include "trainer/telemetry/formats/mllog.h"
#include "trainer/telemetry/formats/nvlog.h"
#include "trainer/telemetry/formats/progress.h"
#include "trainer/telemetry/formats/prometheus_file.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// An H200 does 80 of these in a second, and moves 32.
constexpr ImageWork kWork = {989e12 / 80, 4800e9 / 32};

// A run of 120 steps of half a second, 8 images each: what the outputs have got of it.
class ReportTest : public testing::Test {
 protected:
  void RunReport(int rank) {
    ThreadCommunicator communicator(world_, rank);
    outputs_.log = MakeLogger(log_text_, rank, "info");
    Report report(config_, communicator, outputs_, kWork);
    const Schedule schedule = MakeSchedule(config_.schedule, 320, {config_.batch_size, 2});
    report.StartTraining(schedule, {320, 40});
    StepTimer timer;
    StepRecord record;
    record.times.step = 0.5;
    record.cross_entropy = 2;
    record.l2_loss = 0.25;
    for (; record.step < schedule.total_steps; ++record.step) {
      record.launch_step = record.step;
      timer.Add(record.times);
      report.Step(record);
    }
    report.EndTraining(timer);
    EvaluationResult result;
    result.top1 = 0.25;
    report.StartEvaluation(120, 40);
    report.EndEvaluation(120, result);
    report.EndRun(true);
  }

  static TrainConfig MakeConfig() {
    TrainConfig config;
    config.batch_size = 4;
    config.seed = 18446744073709551615U;
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
  Report report(config, communicator, outputs_, kWork);
  report.StartTraining(MakeSchedule(config.schedule, 320, {config.batch_size, 2}), {320, 40});
  StepRecord record;
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
  Report report(config_, communicator, outputs_, kWork);
  report.StartTraining(MakeSchedule(config_.schedule, 320, {config_.batch_size, 2}), {320, 40});
  StepRecord record;
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
  Report report(config_, communicator, outputs_, kWork);
  report.StartTraining(MakeSchedule(config_.schedule, 320, {config_.batch_size, 2}), {320, 40});
  StepRecord record;
  record.times.step = 0.5;
  report.Step(record);
  report.Pause(1);
  now += std::chrono::seconds(1000);
  report.GoOn(1, 990);
  ++record.step;
  report.Step(record);
  EXPECT_THAT(log_text_.str(), AllOf(HasSubstr("info: paused after step 1: ddlctl resume lets"),
                                     HasSubstr("info: going on after step 1, paused for 0:16:30")));
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
  MlLog mllog(text, {"open", "org", "platform", "research"});
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
  MlLog mllog(text, {"open", "org", "platform", "research"});
  const TemporaryFolder folder;
  EventFile events(folder.path(), "node", "", [](int) {});
  PrometheusFile prometheus(folder.path(), {}, [](int) {});
  ThreadCommunicator communicator(world_, 0);
  outputs_ = {.log = MakeLogger(log_text_, 0, "info"), .logs = {&mllog, &events, &prometheus}};
  Report report(config_, communicator, outputs_, kWork);
  const Schedule schedule = MakeSchedule(config_.schedule, 320, {config_.batch_size, 2});
  report.StartTraining(schedule, {320, 40});
  report.RolledBack({30, 240}, 39, schedule.From({30, 320, 80}), 2);
  EXPECT_EQ(Count(text.str(), "\"epoch_start\""), 2);
  EXPECT_EQ(Count(text.str(), "\"epoch_stop\""), 1);
  EXPECT_THAT(log_text_.str(),
              HasSubstr("back at step 30: the 80 images from there to the end of step 39 "
                        "are skipped, training goes on behind them in epoch 2 "
                        "(rollback 2 of at most 3 to this checkpoint)"));
  StepRecord record;
  record.step = 30;
  record.times.step = 1;
  report.Step(record);
  const auto content = [](const std::filesystem::path& path) {
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
  MlLog mllog(text, {"open", "org", "platform", "research"});
  ThreadCommunicator communicator(world_, 0);
  outputs_ = {.log = MakeLogger(log_text_, 0, "info"), .logs = {&mllog}};
  TrainConfig config = config_;
  config.schedule.num_iter = 10;
  config.schedule.run_iter = 2;
  Report report(config, communicator, outputs_, kWork);
  Schedule schedule = MakeSchedule(config.schedule, 320, {config.batch_size, 2});
  ASSERT_EQ(schedule.EndOfLaunch(0), 80);
  report.StartTraining(schedule, {320, 40});
  StepRecord record;
  record.times.step = 1;
  for (const Position& next : {Position{60, 640, 160}, Position{60, 800, 320}}) {
    for (record.step = schedule.start.step; record.step < 79; ++record.step) report.Step(record);
    schedule = schedule.From(next);
    report.RolledBack({60, 480}, 79, schedule, 1);
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
  GpuMeter gpu(tests::BuildFolder() + "/tests/libfake_energy_nvml.so", "0000:1C:00.0");
  outputs_.gpu = &gpu;
  RunReport(0);
  EXPECT_THAT(log_text_.str(),
              HasSubstr("GPU of rank 0: NVIDIA H200, 23.4 of 150.0 GB in use, 25.0 % of its "
                        "roofline (compute 10.0 %, memory 25.0 %)\n"));
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

}  // namespace
}  // namespace trainer
