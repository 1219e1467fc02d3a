// SPDX-License-Identifier: Apache-2.0

#include "bench/report/report.h"

#include <nlohmann/json.hpp>

#include "bench/base/statistics.h"
#include "bench/report/report_model.h"
#include "bench/report/views.h"
#include "support/command_line.h"
#include "tests/bench/report/report_test_directory.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "trainer/core/error.h"
#include "trainer/options/options.h"

namespace bench {
namespace {

using ::testing::DoubleEq;

// So many ranks with 256 images each, at this speed.
RunRecord Trained(int ranks, double speed, const std::string& arch, const std::string& sums) {
  RunRecord run;
  run.path = std::to_string(ranks);
  run.ranks = ranks;
  run.settings = {{"arch", arch}, {"batch_size", "256"}, {"reduce_precision", sums}};
  for (int step = 20; step < 24; ++step) AddStep(run.measures, step, speed);
  return run;
}

scaling::Machine FourGpus(double adapter_gbits) {
  scaling::Machine machine;
  machine.gpus_per_node = 4;
  machine.inside = "nvlink2";
  machine.adapters = 1;
  machine.adapter_gbits = adapter_gbits;
  return machine;
}

std::vector<std::optional<double>> Predicted(std::vector<std::pair<int, double>> speeds,
                                             const scaling::Machine& machine,
                                             const std::string& arch = "resnet50",
                                             const std::string& sums = "fp32") {
  std::vector<RunRecord> runs;
  for (const auto& [ranks, speed] : speeds) runs.push_back(Trained(ranks, speed, arch, sums));
  ReportModel model = MakeReportModel(std::move(runs), 0);
  AddPredictions(model, machine);
  std::vector<std::optional<double>> predicted;
  for (const ScalingPoint& point : model.scalings.at(0).points)
    predicted.push_back(point.predicted);
  return predicted;
}

TEST(AddPredictions, WhatIsToldComesOutAgainAndTheRestIsPredicted) {
  const auto predicted =
      Predicted({{1, 1000}, {2, 1960}, {4, 3900}, {8, 7600}, {16, 9000}}, FourGpus(100));
  ASSERT_EQ(predicted.size(), 5U);
  EXPECT_NEAR(predicted[0].value(), 1000, 1);
  EXPECT_NEAR(predicted[2].value(), 3900, 4);
  EXPECT_NEAR(predicted[3].value(), 7600, 8);
  // Not 9000, which something slowed that no link explains.
  EXPECT_GT(predicted[4].value(), 14500);
  EXPECT_LT(predicted[4].value(), 15200);
}

TEST(AddPredictions, LinksAndTheTypeOfSumsCount) {
  const std::vector<std::pair<int, double>> speeds = {{1, 1000}, {16, 9000}};
  const double fast = Predicted(speeds, FourGpus(100))[1].value();
  const double slow = Predicted(speeds, FourGpus(2))[1].value();
  const double half = Predicted(speeds, FourGpus(2), "resnet50", "16bit")[1].value();
  EXPECT_LT(slow, 0.8 * fast);
  EXPECT_GT(half, 1.2 * slow);
}

TEST(AddPredictions, OnlyFromOneRankAndOfResNet50) {
  EXPECT_FALSE(Predicted({{4, 3900}, {8, 7600}}, FourGpus(100))[1]);
  EXPECT_FALSE(Predicted({{1, 1000}, {8, 7600}}, FourGpus(100), "resnet18")[1]);
}

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
  const RunStats& figures = model.figures.at(0);
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
  const RunStats figures =
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

class MakeReportTest : public ReportDirectoryTest {
 protected:
  void SetUp() override {
    ReportDirectoryTest::SetUp();
    WriteRun("one", 1, 50);
    WriteRun("two", 2, 95);
    options_.runs = {(directory_ / "one").string(), (directory_ / "two").string()};
  }

  void WriteRun(const std::string& name, int ranks, double speed) {
    std::string log = LoggedOptions(R"("batch_size": 8, "data_dir": "<data>")") +
                      LoggedRun(R"("program": "ddltraind 0.1.0", "backend": "cpu: oneDNN", )"
                                R"("ranks": )" +
                                std::to_string(ranks));
    for (int step = 20; step < 90; ++step) {
      log += LoggedSpeed(step, std::to_string(speed + step % 3), std::to_string(7 - 0.01 * step));
    }
    log += Logged(R"("type": "LOG", "step": [], "data": {"top1_accuracy": 0.5})");
    Write(name + "/log.json", log);
  }

  ReportTexts Make() { return MakeReport(options_, "0.1.0", diagnostics_); }
  std::string RejectionOf() {
    return tests::Rejection<trainer::Error>(EX_USAGE, [&] { Make(); });
  }

  ReportOptions options_;
};

TEST_F(MakeReportTest, IsAPageByDefault) {
  const ReportTexts texts = Make();
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(texts.page_path, "report.html");
  EXPECT_EQ(texts.printed, "");
  for (const char* id :
       {"throughput", "loss", "scaling", "efficiency", "run-differences", "accuracy"}) {
    EXPECT_THAT(texts.page, HasSubstr("<svg id=\"" + std::string(id) + "\""));
  }
  EXPECT_THAT(texts.page, AllOf(HasSubstr("<h1>2 trainings</h1>"), HasSubstr("cpu: oneDNN")));
  EXPECT_THAT(texts.page, AllOf(HasSubstr("&lt;data&gt;"), Not(HasSubstr("<data>"))));
}

TEST_F(MakeReportTest, IsTextOrJsonWhereThatIsAskedFor) {
  options_.text = true;
  EXPECT_THAT(Make().printed, HasSubstr("# Scaling"));
  EXPECT_EQ(Make().page_path, "");
  options_.output = "page.html";
  EXPECT_EQ(Make().page_path, "page.html");
  EXPECT_THAT(Make().page, HasSubstr("</html>"));
  options_.text = false;
  options_.json = true;
  EXPECT_THAT(Make().printed, HasSubstr("\"efficiency\": 0.9"));
}

TEST_F(MakeReportTest, ShowsTheRestWhereARunCannotBeRead) {
  options_.runs.push_back((directory_ / "nowhere").string());
  Write("bad/log.json", "DLLL {\n");
  options_.runs.push_back((directory_ / "bad").string());
  const ReportTexts texts = Make();
  EXPECT_EQ(diagnostics_.exit_code(), EX_NOINPUT);
  EXPECT_THAT(texts.page, HasSubstr("3 messages about the files"));
  EXPECT_THAT(texts.page, HasSubstr("nowhere: there is no such directory"));
  EXPECT_THAT(texts.page, HasSubstr("<svg id=\"scaling\""));
}

TEST_F(MakeReportTest, IsNothingWithoutARun) {
  options_.runs = {(directory_ / "nowhere").string()};
  const ReportTexts texts = Make();
  EXPECT_EQ(texts.page_path, "");
  EXPECT_EQ(texts.printed, "");
  EXPECT_THAT(told_, ElementsAre(HasSubstr("nowhere: there is no such directory")));
}

TEST_F(MakeReportTest, ComparesWithTheBaseline) {
  options_.text = true;
  options_.baseline = "two";
  EXPECT_THAT(Make().printed, HasSubstr("  one  two "));
  options_.baseline = options_.runs[1] + "/";
  EXPECT_THAT(Make().printed, HasSubstr("  one  two "));
  options_.baseline = "tow";
  EXPECT_THAT(RejectionOf(), HasSubstr("--baseline=tow is none of the runs; did you mean two?"));
}

TEST_F(MakeReportTest, RejectsOptionsThatMakeNoSense) {
  options_.text = options_.json = true;
  EXPECT_THAT(RejectionOf(), HasSubstr("--text and --json both write standard output"));
  options_.json = false;
  options_.skip_steps = -1;
  EXPECT_THAT(RejectionOf(), HasSubstr("--skip_steps must be 0 or more"));
}

TEST_F(MakeReportTest, LeavesOutSteps) {
  options_.json = true;
  options_.skip_steps = 60;
  EXPECT_THAT(Make().printed, HasSubstr("\"steps\": 10,"));
}

// The groups of two runs that differ in this alone; "" is an option that was not given.
std::size_t GroupsWithOther(const std::string& option, const std::string& a, const std::string& b) {
  std::vector<RunRecord> runs(2);
  for (RunRecord& run : runs) {
    run.ranks = 2;
    run.settings = {{"batch_size", "8"}, {"precision", "fp32"}};
  }
  if (!a.empty()) runs[0].settings.emplace_back(option, a);
  if (!b.empty()) runs[1].settings.emplace_back(option, b);
  return GroupsOf(runs).size();
}

// By the trainer's own table, so that an option which it gets later is not forgotten here.
TEST(GroupsOf, APlaceOfFilesMakesNoOtherGroup) {
  trainer::Options options;
  int places = 0;
  for (const trainer::OptionRow& row : trainer::OptionTable()) {
    const std::string shape = row.access.describe(row, options).shape;
    // An option that is another's name is logged by that one's.
    if (row.rank_rule == trainer::RankRule::kOtherName) continue;
    if (shape != "DIR" && shape != "FILE") continue;
    ++places;
    EXPECT_EQ(GroupsWithOther(row.name, "/scratch/1", "/scratch/2"), 1U) << row.name;
  }
  EXPECT_GT(places, 10);
}

TEST(GroupsOf, HowLongARunLastsAndWhoIsToldMakeNoOtherGroup) {
  for (const char* option :
       {"num_iter", "run_iter", "stop_at_top1", "stop_margin", "job_comment"}) {
    EXPECT_EQ(GroupsWithOther(option, "1", "2"), 1U) << option;
  }
  EXPECT_EQ(GroupsWithOther("precision_of_it", "1", "2"), 2U);
}

// Which directory it is does not matter, but a run with a cache is not like one without.
TEST(GroupsOf, ACacheOfRecordsAndTimedOpsAreOtherRuns) {
  EXPECT_EQ(GroupsWithOther("record_cache", "", "/dev/shm"), 2U);
  EXPECT_EQ(GroupsWithOther("variability_dir", "", "logs"), 2U);
  EXPECT_EQ(GroupsWithOther("plan_cache", "", "plans.txt"), 1U);
}

Document Sample() {
  Document document = {"Runs of <caf\xE9>", {}, {"a<b: cannot\x1B be read"}};
  Section section = {"speed", "Speed", "What it means.", {}, {}};
  section.tables.push_back(
      {"Speeds", {{"run", false}, {"images/s", true}}, {{"a&b", "12.5"}, {"longer", "1"}}, true});
  section.tables.push_back({"Long one", {{"run", false}}, {{"x"}}, false});
  section.figures.push_back({"plot",
                             "A plot",
                             BarChart{"ms", {"a"}, {{"r", {1}, "1"}}},
                             {"Its numbers", {{"r", false}, {"ms", true}}, {{"r", "1"}}, true}});
  document.sections.push_back(section);
  return document;
}

TEST(FormatHtml, IsAPageThatNeedsNothingElse) {
  const std::string html = FormatHtml(Sample(), "0.1.0");
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  for (const char* outside : {"<script", "http:", "https:", "url(", "@import", "<link", "<img"}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
  EXPECT_THAT(html, HasSubstr("default-src 'none'; style-src 'unsafe-inline'"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(html, AllOf(HasSubstr("@media print"), HasSubstr("<html lang=\"en\">")));
}

TEST(FormatHtml, EscapesAllThatItShows) {
  const std::string html = FormatHtml(Sample(), "0.1.0");
  EXPECT_THAT(html, HasSubstr("<title>Runs of &lt;caf\xEF\xBF\xBD&gt;</title>"));
  EXPECT_THAT(html, HasSubstr("<h1>Runs of &lt;caf\xEF\xBF\xBD&gt;</h1>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">a&amp;b</th><td class=\"number\">12.5</td>"));
  EXPECT_THAT(html, HasSubstr("1 message about the files"));
  EXPECT_THAT(html, HasSubstr("<li>a&lt;b: cannot  be read</li>"));
}

TEST(FormatHtml, HasTheNumbersBehindEachPlot) {
  const std::string html = FormatHtml(Sample(), "0.1.0");
  const std::size_t plot = html.find("<svg id=\"plot\"");
  const std::size_t table = html.find("<caption>Its numbers</caption>");
  ASSERT_NE(plot, std::string::npos);
  ASSERT_NE(table, std::string::npos);
  EXPECT_LT(plot, table);
  EXPECT_LT(html.rfind("<details>", table), table);
  EXPECT_THAT(html, HasSubstr("<summary>Long one</summary>"));
}

TEST(FormatText, HasShortTablesInColumns) {
  EXPECT_EQ(FormatText(Sample()),
            "Runs of <caf\xEF\xBF\xBD>\n\n"
            "# Speed\n\n"
            "Speeds\n"
            "  run     images/s\n"
            "  a&b         12.5\n"
            "  longer         1\n\n"
            "Its numbers\n"
            "  r  ms\n"
            "  r   1\n\n");
}

TEST(FormatReportJson, HasAllNumbersAndNullForWhatIsUnknown) {
  RunRecord run{.path = "caf\xE9", .settings = {{"batch_size", "4"}}, .ranks = 2};
  run.times[1].step = 0.25;
  AddStep(run.measures, 20, 100);
  const auto report =
      nlohmann::json::parse(FormatReportJson(MakeReportModel({run}, 0), {"a message"}, "0.1.0"));
  EXPECT_EQ(report["format"], 1);
  EXPECT_EQ(report["messages"][0], "a message");
  const auto& first = report["runs"][0];
  EXPECT_EQ(first["path"], "caf\xEF\xBF\xBD");
  EXPECT_EQ(first["images_per_second"]["value"], 100);
  EXPECT_TRUE(first["images_per_second"]["margin"].is_null());
  EXPECT_DOUBLE_EQ(first["step_seconds"]["mean"].get<double>(), 0.08);
  EXPECT_EQ(first["rank_times"][0]["step_seconds"], 0.25);
  EXPECT_TRUE(first["top1_accuracy"].is_null());
  EXPECT_EQ(first["options"]["batch_size"], "4");
}

}  // namespace
}  // namespace bench
