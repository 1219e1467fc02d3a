// SPDX-License-Identifier: Apache-2.0

#include "bench/report/report_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "bench/base/confidence.h"
#include "bench/report/run_groups.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

// A run of so many ranks, 8 images each, with these images/s.
RunRecord RunOf(const std::string& path, int ranks, const std::vector<double>& speeds,
                Settings more = {}) {
  RunRecord run;
  run.path = path;
  run.ranks = ranks;
  run.settings = {{"batch_size", "8"}, {"results_dir", path}};
  run.settings.insert(run.settings.end(), more.begin(), more.end());
  run.environment = {{"program", "ddltraind 0.1.0"}};
  std::int64_t step = 20;
  for (const double speed : speeds) AddStep(run.measures, step++, speed);
  return run;
}

TEST(MakeReportModel, FiguresAreThoseOfTheRawTimes) {
  // 16 images in 0.16, 0.32, 0.16, 0.64 s.
  const ReportModel model = MakeReportModel({RunOf("r", 2, {100, 50, 100, 25})}, 0);
  const RunFigures& figures = model.figures.at(0);
  EXPECT_EQ(figures.steps, 4);
  EXPECT_EQ(figures.global_batch, 16);
  EXPECT_DOUBLE_EQ(figures.images_per_second->value, 64 / 1.28);
  ASSERT_TRUE(figures.step);
  EXPECT_DOUBLE_EQ(figures.step->mean, 0.32);
  EXPECT_DOUBLE_EQ(figures.step->sd, std::sqrt((2 * 0.16 * 0.16 + 0.32 * 0.32) / 3));
  EXPECT_DOUBLE_EQ(figures.step->min, 0.16);
  EXPECT_DOUBLE_EQ(figures.step->median, 0.24);
  EXPECT_DOUBLE_EQ(figures.step->p95, 0.64 - 0.15 * 0.32);
  EXPECT_DOUBLE_EQ(figures.step->max, 0.64);
  EXPECT_THAT(figures.batch_speeds,
              ElementsAre(DoubleEq(100), DoubleEq(50), DoubleEq(100), DoubleEq(25)));
  EXPECT_DOUBLE_EQ(*figures.images_per_second->margin, *MeanMargin(figures.batch_speeds));
}

TEST(MakeReportModel, KnowsNoStepTimesWithoutABatch) {
  RunRecord run = RunOf("r", 0, {100});
  const ReportModel model = MakeReportModel({run}, 0);
  EXPECT_FALSE(model.figures[0].global_batch);
  EXPECT_FALSE(model.figures[0].step);
  EXPECT_EQ(model.figures[0].images_per_second->value, 100);
  EXPECT_FALSE(model.figures[0].images_per_second->margin);
  for (const char* strange : {"0", "-8", "8.5", "many", "1e300"}) {
    run.ranks = 2;
    run.settings = {{"batch_size", strange}};
    EXPECT_FALSE(MakeReportModel({run}, 0).figures[0].global_batch) << strange;
  }
}

TEST(MakeReportModel, AStepOfSeveralBatchesTakesTheTimeOfAll) {
  const RunFigures figures =
      MakeReportModel({RunOf("r", 2, {100}, {{"mode", "train"}, {"accumulate", "4"}})}, 0)
          .figures[0];
  EXPECT_EQ(figures.global_batch, 64);
  EXPECT_DOUBLE_EQ(figures.step->mean, 0.64);
  EXPECT_FALSE(
      MakeReportModel({RunOf("r", 2, {100}, {{"accumulate", "0"}})}, 0).figures[0].global_batch);
}

TEST(MakeReportModel, AStepHasTheImagesThatWereAskedFor) {
  const Settings settings = {{"mode", "train"}, {"accumulate", "3"}, {"global_batch_size", "32"}};
  EXPECT_EQ(MakeReportModel({RunOf("r", 3, {100}, settings)}, 0).figures[0].global_batch, 32);
}

TEST(MakeReportModel, GroupsRunsThatWereMadeAlike) {
  const ReportModel model =
      MakeReportModel({RunOf("a/1", 2, {100}, {{"seed", "1"}, {"precision", "fp32"}}),
                       RunOf("a/2", 1, {60}, {{"precision", "fp32"}}),
                       RunOf("a/3", 2, {104}, {{"seed", "2"}, {"precision", "fp32"}}),
                       RunOf("a/4", 2, {200}, {{"precision", "fp16"}})},
                      0);
  ASSERT_EQ(model.groups.size(), 3U);
  EXPECT_EQ(model.groups[0].name, "1 rank, precision=fp32");
  EXPECT_EQ(model.groups[1].name, "2 ranks, precision=fp32");
  EXPECT_EQ(model.groups[2].name, "2 ranks, precision=fp16");
  EXPECT_THAT(model.groups[1].runs, ElementsAre(0, 2));
  EXPECT_EQ(model.groups[1].images_per_second->value, 102);
  EXPECT_DOUBLE_EQ(*model.groups[1].images_per_second->margin,
                   *MeanMargin(std::vector<double>{100, 104}));
  EXPECT_FALSE(model.groups[0].images_per_second->margin);
  EXPECT_EQ(model.figures[2].group, 1U);
  EXPECT_EQ(model.figures[1].group, 0U);
}

TEST(MakeReportModel, OtherProgramsAndBackEndsAreOtherGroups) {
  RunRecord other = RunOf("b", 2, {100});
  other.environment = {{"program", "ddltraind 0.2.0"}};
  const ReportModel model = MakeReportModel({RunOf("a", 2, {100}), other}, 0);
  ASSERT_EQ(model.groups.size(), 2U);
  EXPECT_EQ(model.groups[1].name, "2 ranks, program=ddltraind 0.2.0");
  ASSERT_EQ(model.differing.size(), 1U);
  EXPECT_EQ(model.differing[0].name, "program");
  EXPECT_THAT(model.differing[0].values, ElementsAre("ddltraind 0.1.0", "ddltraind 0.2.0"));
}

TEST(MakeReportModel, AnotherGpuOfTheNodeAndFewerThreadsAreTheSameBackEnd) {
  std::vector<RunRecord> runs;
  for (const char* backend :
       {"cuda: NVIDIA H200 (GPU 0), CUDA 12.4, fp16", "cuda: NVIDIA H200 (GPU 3), CUDA 12.4, fp16",
        "cuda: NVIDIA V100 (GPU 0), CUDA 12.4, fp16", "cpu: oneDNN 2.6.3, AVX2, fp32, 2 threads",
        "cpu: oneDNN 2.6.3, AVX2, fp32, 1 thread"}) {
    runs.push_back(RunOf(std::to_string(runs.size()), 1, {100}));
    runs.back().environment = {{"backend", backend}};
  }
  const ReportModel model = MakeReportModel(runs, 0);
  ASSERT_EQ(model.groups.size(), 3U);
  EXPECT_THAT(model.groups[0].runs, ElementsAre(0, 1));
  EXPECT_THAT(model.groups[1].runs, ElementsAre(2));
  EXPECT_THAT(model.groups[2].runs, ElementsAre(3, 4));
  EXPECT_EQ(model.groups[2].name, "1 rank, backend=cpu: oneDNN 2.6.3, AVX2, fp32");
}

TEST(MakeReportModel, ScalesFromTheFewestRanks) {
  const ReportModel model = MakeReportModel(
      {RunOf("4", 4, {180}), RunOf("1a", 1, {48}), RunOf("1b", 1, {52}), RunOf("2", 2, {95}),
       RunOf("x", 2, {95}, {{"precision", "fp16"}}), RunOf("unknown", 0, {10})},
      0);
  ASSERT_EQ(model.scalings.size(), 1U);
  const std::vector<ScalingPoint>& points = model.scalings[0].points;
  ASSERT_EQ(points.size(), 3U);
  EXPECT_EQ(points[0].ranks, 1);
  EXPECT_EQ(points[0].images_per_second.value, 50);
  EXPECT_EQ(points[0].efficiency, 1);
  EXPECT_EQ(points[1].ideal, 100);
  EXPECT_DOUBLE_EQ(points[1].efficiency, 0.95);
  EXPECT_EQ(points[2].ideal, 200);
  EXPECT_DOUBLE_EQ(points[2].efficiency, 0.9);
}

TEST(MakeReportModel, ComparesRunsAndGroupsWithTheBaseline) {
  const ReportModel model = MakeReportModel(
      {RunOf("a1", 2, {98, 102}, {{"graph", "on"}}), RunOf("b1", 2, {108, 112}, {{"graph", "off"}}),
       RunOf("a2", 2, {99, 103}, {{"graph", "on"}}),
       RunOf("b2", 2, {107, 111}, {{"graph", "off"}})},
      0);
  ASSERT_EQ(model.run_differences.size(), 3U);
  const double a1 = 2 / (1 / 98.0 + 1 / 102.0);
  const double b1 = 2 / (1 / 108.0 + 1 / 112.0);
  const Difference& of_runs = model.run_differences[0];
  EXPECT_EQ(of_runs.a, 0U);
  EXPECT_EQ(of_runs.b, 1U);
  EXPECT_DOUBLE_EQ(of_runs.images_per_second.value, b1 - a1);
  EXPECT_NEAR(of_runs.percent.value, 100 * (b1 / a1 - 1), 1e-9);
  EXPECT_NEAR(*of_runs.images_per_second.margin,
              *DifferenceMargin(std::vector<double>{98, 102}, std::vector<double>{108, 112}), 1e-9);
  EXPECT_NEAR(*of_runs.percent.margin, 100 * *of_runs.images_per_second.margin / a1, 1e-9);
  ASSERT_EQ(model.group_differences.size(), 1U);
  const double a2 = 2 / (1 / 99.0 + 1 / 103.0);
  const double b2 = 2 / (1 / 107.0 + 1 / 111.0);
  EXPECT_NEAR(model.group_differences[0].images_per_second.value, (b1 + b2 - a1 - a2) / 2, 1e-9);
  EXPECT_NEAR(*model.group_differences[0].images_per_second.margin,
              *DifferenceMargin(std::vector<double>{a1, a2}, std::vector<double>{b1, b2}), 1e-9);
}

TEST(MakeReportModel, TakesTheBaselineThatIsAskedFor) {
  const ReportModel model = MakeReportModel({RunOf("a", 1, {100}), RunOf("b", 1, {50})}, 1);
  ASSERT_EQ(model.run_differences.size(), 1U);
  EXPECT_EQ(model.run_differences[0].a, 1U);
  EXPECT_EQ(model.run_differences[0].percent.value, 100);
  EXPECT_TRUE(MakeReportModel({RunOf("a", 1, {}), RunOf("b", 1, {50})}, 0).run_differences.empty());
  EXPECT_THROW(MakeReportModel({}, 0), trainer::Error);
}

TEST(MakeReportModel, KnowsEnergyWhereEachRankHasAMeter) {
  RunRecord run = RunOf("a", 2, {50});
  run.gpus.resize(2);
  run.gpus[0].energy = 600;
  run.gpus[0].power_seconds = 3;
  run.gpus[1].energy = 400;
  run.gpus[1].power_seconds = 4;
  EXPECT_EQ(MakeReportModel({run}, 0).figures[0].watts, 300);
  EXPECT_EQ(MakeReportModel({run}, 0).figures[0].joules_per_image, 6);
  run.gpus[1].power_seconds = 0;
  EXPECT_EQ(MakeReportModel({run}, 0).figures[0].joules_per_image, std::nullopt);
  EXPECT_EQ(MakeReportModel({run}, 0).figures[0].why_no_energy, "power of 1 GPU for 2 ranks");
  run.gpus.clear();
  EXPECT_EQ(MakeReportModel({run}, 0).figures[0].watts, std::nullopt);
}

std::vector<std::string> NamesOf(const std::vector<std::string>& paths) {
  std::vector<RunRecord> runs;
  for (const std::string& path : paths) runs.push_back(RunOf(path, 1, {}));
  return NamesOfRuns(runs);
}

TEST(NamesOfRuns, LeaveOutWhatAllBeginWith) {
  EXPECT_THAT(NamesOf({"/tmp/s/1n1g/results/a", "/tmp/s/1n2g/results/a"}),
              ElementsAre("1n1g", "1n2g"));
  EXPECT_THAT(NamesOf({"s/1n1g/results/a", "s/1n2g/results/b", "s/1n2g/results/a"}),
              ElementsAre("1n1g/a", "1n2g/b", "1n2g/a"));
  EXPECT_THAT(NamesOf({"s/1n1g/results/a", "s/1n2g/a"}), ElementsAre("1n1g/results/a", "1n2g/a"));
  EXPECT_THAT(NamesOf({"./a/", "b"}), ElementsAre("a", "b"));
  EXPECT_THAT(NamesOf({"/tmp/run/"}), ElementsAre("run"));
  EXPECT_THAT(NamesOf({"."}), ElementsAre("."));
  EXPECT_THAT(NamesOf({"a", "a/b"}), ElementsAre("a", "a/b"));
}

}  // namespace
}  // namespace bench
