// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/formats/prometheus_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "tests/trainer/temporary_folder.h"

namespace trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class PrometheusFileTest : public ::testing::Test {
 protected:
  std::string Text() const {
    std::ifstream file(folder_.path() / "ddltraind-rank-00003.prom");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void Step(std::int64_t steps, double seconds) {
    StepMetrics metrics;
    metrics.step = steps - 1;
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

  TemporaryFolder folder_;
  TimePoint now_{std::chrono::milliseconds(1593597600500)};
  std::vector<int> losses_;
  PrometheusFile file_{folder_.path(),
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
  PrometheusFile file(folder_.path(), {3, "a\"b\\c\nd", "0"}, [](int) {});
  ASSERT_EQ(file.Start(), 0);
  EXPECT_THAT(Text(), HasSubstr("host=\"a\\\"b\\\\c\\nd\"} 1\n"));
}

TEST_F(PrometheusFileTest, WhatCannotBeWrittenIsToldOnceAndTheOldTextStays) {
  ASSERT_EQ(file_.Start(), 0);
  const std::string before = Text();
  const std::filesystem::path partial = folder_.path() / ".ddltraind-rank-00003.prom.tmp";
  std::filesystem::create_directory(partial);
  file_.End();
  file_.End();
  EXPECT_THAT(losses_, ElementsAre(EISDIR));
  EXPECT_EQ(Text(), before);
  EXPECT_EQ(file_.Start(), EISDIR);
  std::filesystem::remove(partial);
  file_.End();
  EXPECT_THAT(Text(), HasSubstr("ddltraind_running{rank=\"3\",host=\"gpu025\"} 0\n"));
  std::filesystem::create_directory(partial);
  file_.End();
  EXPECT_THAT(losses_, ElementsAre(EISDIR, EISDIR));
}

TEST_F(PrometheusFileTest, LeavesNothingBesideTheFile) {
  PrometheusFile in_a_place_that_is_a_folder(folder_.path(), {4, "h", "0"}, [](int) {});
  std::filesystem::create_directory(in_a_place_that_is_a_folder.path());
  EXPECT_EQ(in_a_place_that_is_a_folder.Start(), EISDIR);
  ASSERT_EQ(file_.Start(), 0);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names,
              UnorderedElementsAre("ddltraind-rank-00003.prom", "ddltraind-rank-00004.prom"));
}

}  // namespace
}  // namespace trainer
