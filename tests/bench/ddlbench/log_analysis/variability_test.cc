// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/variability.h"

#include <nlohmann/json.hpp>

#include "bench/ddlbench/log_analysis/mila_report.h"
#include "bench/ddlbench/log_analysis/variability.h"
#include "tests/bench/ddlbench/unreadable_directory.h"
#include "tests/support/temporary_directory.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

// numpy.percentile of the same values.
TEST(BoxPlot, HasTheQuartilesOfPandas) {
  const std::vector<double> values = {7, 1, 3, 2};
  const BoxPlot box = BoxOf(values);
  EXPECT_DOUBLE_EQ(box.q1, 1.75);
  EXPECT_DOUBLE_EQ(box.median, 2.5);
  EXPECT_DOUBLE_EQ(box.q3, 4);
  EXPECT_DOUBLE_EQ(box.lower(), 1.75 - 1.5 * 2.25);
  EXPECT_DOUBLE_EQ(box.upper(), 4 + 1.5 * 2.25);
  EXPECT_DOUBLE_EQ(box.variation(), 4 * 2.25 / 2.5);
  const std::vector<double> one = {3};
  EXPECT_DOUBLE_EQ(BoxOf(one).q1, 3);
  EXPECT_DOUBLE_EQ(BoxOf(one).variation(), 0);
}

// Eight GPUs of two nodes; the last one is slow, and the first has three runs.
class VariabilityTest : public testing::Test {
 protected:
  static DeviceRuns Runs() {
    DeviceRuns runs;
    const double seconds[] = {0.100, 0.101, 0.102, 0.103, 0.104, 0.105, 0.106, 0.150};
    for (int i = 0; i < 8; ++i) {
      DeviceRun run;
      // Mean as above.
      run.durations = {seconds[i] - 0.01, seconds[i] + 0.01};
      runs[{i < 4 ? "c1" : "c2", i % 4}]["1000"] = run;
    }
    RunsOfDevice& first = runs[{"c1", 0}];
    first["1001"].durations = {0.098};
    first["1002"].durations = {0.101};
    first["1000"].watts = 250;
    first["1001"].watts = 254;
    return runs;
  }
  const Variability result_ = AnalyzeVariability(Runs());
  const DeviceVariability& Of(const std::string& host, int device) const {
    for (const DeviceVariability& found : result_.devices) {
      if (found.place == DevicePlace{host, device}) return found;
    }
    throw std::out_of_range(host);
  }
};

TEST_F(VariabilityTest, AGpuIsAsFastAsTheMedianOfItsRuns) {
  const DeviceVariability& first = Of("c1", 0);
  EXPECT_EQ(first.runs, 3);
  EXPECT_DOUBLE_EQ(first.seconds, 0.1);
  EXPECT_DOUBLE_EQ(first.repeat_spread, (0.101 - 0.098) / 0.1);
  EXPECT_DOUBLE_EQ(first.min_seconds, 0.09);
  EXPECT_DOUBLE_EQ(first.max_seconds, 0.11);
  EXPECT_EQ(first.watts, 252);
  EXPECT_FALSE(first.mhz);
  EXPECT_DOUBLE_EQ(result_.max_repeat_spread, first.repeat_spread);
}

TEST_F(VariabilityTest, OutliersAreBeyondTheWhiskers) {
  EXPECT_DOUBLE_EQ(result_.box.median, 0.1035);
  EXPECT_EQ(Of("c2", 3).outlier, 1);
  EXPECT_EQ(Of("c1", 0).outlier, 0);
  EXPECT_EQ(result_.devices.front().place, (DevicePlace{"c2", 3})) << "the slowest first";
  EXPECT_DOUBLE_EQ(Of("c2", 3).normalized, 0.15 / 0.1035);
  EXPECT_DOUBLE_EQ(result_.range, (0.15 - 0.1) / 0.1035);
  DeviceRuns runs = Runs();
  runs[{"c1", 2}]["1000"].durations = {0.01};
  EXPECT_EQ(AnalyzeVariability(runs).devices.back().outlier, -1);
}

TEST_F(VariabilityTest, TheTextSaysAllOfIt) {
  const std::string text = FormatVariability(result_);
  EXPECT_THAT(text,
              HasSubstr("| c2                   | 3      | 1    | 150.000   | 1.4493     | "
                        "140.000   | 160.000   | -         | -     | -   | -    | slow    |"));
  EXPECT_THAT(text, HasSubstr("8 GPUs of 2 nodes: median 103.500 ms, quartiles 101.750 and 105.250 "
                              "ms"));
  EXPECT_THAT(text, HasSubstr("variation 13.53 % of the median from whisker to whisker, 48.31 % "
                              "from the fastest to the slowest"));
  EXPECT_THAT(text, HasSubstr("outliers: 1 slow, 0 fast"));
  EXPECT_THAT(text, HasSubstr("repeats on one GPU: 3.00 % apart in the median, 3.00 % at most"));
  DeviceRuns once = Runs();
  once[{"c1", 0}].erase("1001");
  once[{"c1", 0}].erase("1002");
  EXPECT_THAT(FormatVariability(AnalyzeVariability(once)), Not(HasSubstr("repeats on one GPU")));
}

TEST_F(VariabilityTest, JsonHasTheSame) {
  const auto document = nlohmann::json::parse(VariabilityJson(result_));
  EXPECT_EQ(document.at("median_seconds"), 0.1035);
  EXPECT_EQ(document.at("slow_outliers"), 1);
  ASSERT_EQ(document.at("devices").size(), 8);
  EXPECT_EQ(document["devices"][0].at("host"), "c2");
  EXPECT_EQ(document["devices"][0].at("outlier"), "slow");
  EXPECT_FALSE(document["devices"][0].contains("watts"));
  EXPECT_EQ(document["devices"][7].at("watts"), 252);
}

TEST(DurationLogs, NamesTellRunAndHost) {
  const LogName expected = {"1649888832", "c205-007"};
  for (const char* name : {"resnet_iterdur_1649888832_c205-007.txt",
                           "resnet_multi_iterdur_1649888832_c205-007_nnodes1_bsz64_run_2.txt"}) {
    EXPECT_EQ(ParseDurationsName(name), expected) << name;
  }
  EXPECT_EQ(ParseTableName("resnet_123_1649888832_c205-007.csv"), expected);
  const LogName underscored = {"17", "gpu_node_3"};
  EXPECT_EQ(ParseDurationsName("resnet_iterdur_17_gpu_node_3.txt"), underscored);
  EXPECT_EQ(ParseDurationsName("resnet_multi_iterdur_17_gpu_node_3_nnodes1_run_0.txt"),
            underscored);
  EXPECT_EQ(ParseTableName("resnet_99_17_gpu_node_3.csv"), underscored);
  for (const char* name : {"iterdur_1_c.txt", "resnet_iterdur_x_c.txt", "resnet_iterdur_1.txt",
                           "resnet_iterdur_1_c.csv", "log.json", ""}) {
    EXPECT_FALSE(ParseDurationsName(name)) << name;
  }
  for (const char* name : {"resnet_1_c.csv", "resnet_a_1_c.csv", "profile.csv", "r_1_2_.csv"}) {
    EXPECT_FALSE(ParseTableName(name)) << name;
  }
}

class DurationLogsTest : public tests::DirectoryTest {
 protected:
  DeviceRuns Read() { return ReadDurationLogs({directory_.string()}, diagnostics_); }

  std::vector<std::string> told_;
  Diagnostics diagnostics_{[this](const std::string& text) { told_.push_back(text); }};
};

TEST_F(DurationLogsTest, ReadsTheIterationsOfEachDeviceButTheFirst) {
  Write("resnet_iterdur_17_c1.txt",
        "rank = 0, world_size = 2, device_ids = 0\n"
        "\nIteration Duration 0 0 : 9.5\n\nIteration Duration 0 1 : 8.5\n"
        "\nIteration Duration 1 0 : 0.5\n\nIteration Duration 1 1 : 0.25Iteration Duration 2 0 : "
        "1e-1\n"
        "\nTraining time: 0:00:10.500000\nIteration Duration 3 0 : 7\n");
  const DeviceRuns runs = Read();
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_EQ(runs.size(), 2);
  EXPECT_THAT(runs.at({"c1", 0}).at("17").durations, ElementsAre(0.5, 0.1));
  EXPECT_THAT(runs.at({"c1", 1}).at("17").durations, ElementsAre(0.25));
}

TEST_F(DurationLogsTest, WhatIsWrongIsToldAndTheRestCounts) {
  Write(
      "resnet_iterdur_17_c1.txt",
      "\nIteration Duration 0 0 : 9\n\nIteration Duration 1 0 : 0.5\n\nIteration Duration 2 0 : "
      "fast\n\nIteration Duration 3 0 : -1\n\xff\xfe\n\nIteration Duration 4 0 : 0.7\n\nIteration "
      "Dura");
  Write("resnet_iterdur_18_c1.txt", "");
  const DeviceRuns runs = Read();
  EXPECT_THAT(runs.at({"c1", 0}).at("17").durations, ElementsAre(0.5, 0.7));
  const std::string path = (directory_ / "resnet_iterdur_17_c1.txt").string();
  EXPECT_THAT(told_, ElementsAre(path + ":6: no duration of an iteration; it is left out",
                                 path + ":8: no duration of an iteration; it is left out",
                                 (directory_ / "resnet_iterdur_18_c1.txt").string() +
                                     ": no two iterations on one device; it is left out"));
  EXPECT_EQ(diagnostics_.exit_code(), EX_DATAERR);
}

TEST_F(DurationLogsTest, ALineThatIsNotWholeIsANote) {
  Write("resnet_iterdur_17_c1.txt",
        "\nIteration Duration 0 0 : 9\n\nIteration Duration 1 0 : 0.5\n\nIteration Duration 2 0");
  EXPECT_THAT(Read().at({"c1", 0}).at("17").durations, ElementsAre(0.5));
  ASSERT_EQ(told_.size(), 1);
  EXPECT_THAT(told_[0], HasSubstr(":6: the last line is not whole"));
  EXPECT_EQ(diagnostics_.exit_code(), EX_OK);
}

// What was cut off of a number leaves another number.
TEST_F(DurationLogsTest, HalfANumberIsNoDuration) {
  Write("resnet_iterdur_17_c1.txt",
        "\nIteration Duration 0 0 : 9\n\nIteration Duration 1 0 : 0.5\n\nIteration Duration 2 0 : "
        "0.2");
  EXPECT_THAT(Read().at({"c1", 0}).at("17").durations, ElementsAre(0.5));
  EXPECT_THAT(told_, ElementsAre(HasSubstr(":6: the last line is not whole; it is left out")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_OK);
}

TEST_F(DurationLogsTest, HostsWhoseNamesBeginAlikeAreTwo) {
  const std::string text = "\nIteration Duration 0 0 : 9\n\nIteration Duration 1 0 : ";
  Write("resnet_iterdur_17_gpu_1.txt", text + "0.5\n");
  Write("resnet_iterdur_17_gpu_2.txt", text + "0.25\n");
  const DeviceRuns runs = Read();
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_THAT(runs.at({"gpu_1", 0}).at("17").durations, ElementsAre(0.5));
  EXPECT_THAT(runs.at({"gpu_2", 0}).at("17").durations, ElementsAre(0.25));
}

TEST_F(DurationLogsTest, ARunThatTwoFilesHaveIsTold) {
  fs::create_directories(directory_ / "copy");
  const std::string text = "\nIteration Duration 0 0 : 9\n\nIteration Duration 1 0 : ";
  Write("copy/resnet_iterdur_17_c1.txt", text + "0.5\n");
  Write("resnet_iterdur_17_c1.txt", text + "0.25\n");
  EXPECT_THAT(Read().at({"c1", 0}).at("17").durations, ElementsAre(0.5));
  EXPECT_THAT(told_, ElementsAre((directory_ / "resnet_iterdur_17_c1.txt").string() +
                                 ": another file has durations of the run 17 on device 0 of c1; "
                                 "these are left out"));
  EXPECT_EQ(diagnostics_.exit_code(), EX_DATAERR);
}

// Rows as nvprof itself has written them.
TEST_F(DurationLogsTest, FiguresAreMediansBetweenTheFirstAndTheLastKernel) {
  Write("resnet_iterdur_17_c1.txt",
        "\nIteration Duration 0 1 : 9\n\nIteration Duration 1 1 : 0.5\n");
  const std::string before = ",,,,,,,,,,,,,,,\"NVIDIA TITAN V (1)\",,,\"";
  const std::string kernel =
      ",71.4,10063,1,1,64,1,1,32,0,0,,,,,\"NVIDIA TITAN V (1)\",\"1\",\"7\",,\"spmv\",127\n";
  Write("resnet_99_17_c1.csv",
        "==9== NVPROF is profiling process 9\n"
        "\"Start\",\"Duration\",\"Grid X\",\"Grid Y\",\"Grid Z\",\"Block X\",\"Block Y\",\"Block "
        "Z\",\"Registers Per Thread\",\"Static SMem\",\"Dynamic SMem\",\"Size\",\"Throughput\","
        "\"SrcMemType\",\"DstMemType\",\"Device\",\"Context\",\"Stream\",\"System\",\"Name\","
        "\"Correlation_ID\"\n"
        "s,ms,,,,,,,,B,B,MB,GB/s,,,,,,,,\n"
        "0.1" +
            before +
            "135/850\",\"[SM/Memory Clock (MHz)]\",\n"
            "0.2" +
            kernel + "0.3" + before +
            "1200/850\",\"[SM/Memory Clock (MHz)]\",\n"
            "0.4" +
            before +
            "1300/850\",\"[SM/Memory Clock (MHz)]\",\n"
            "0.4" +
            before +
            "58\",\"[Temperature (C)]\",\n"
            "0.4" +
            before +
            "40500/250000\",\"[Power/Limit (mW)]\",\n"
            "0.5" +
            kernel + "0.6" + before + "90\",\"[Temperature (C)]\",\n");
  const DeviceRun run = Read().at({"c1", 1}).at("17");
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(run.mhz, 1250);
  EXPECT_EQ(run.celsius, 58);
  EXPECT_EQ(run.watts, 40.5);
}

TEST_F(DurationLogsTest, ATableWithOtherTitlesIsLeftOut) {
  Write("resnet_iterdur_17_c1.txt",
        "\nIteration Duration 0 0 : 9\n\nIteration Duration 1 0 : 0.5\n");
  Write("resnet_99_17_c1.csv", "a,b,c\n1,2,3\n");
  EXPECT_EQ(Read().size(), 1);
  ASSERT_EQ(told_.size(), 1);
  EXPECT_THAT(told_[0], HasSubstr("resnet_99_17_c1.csv:1: no titles with Start, Device, System"));
}

TEST_F(DurationLogsTest, OfNoLogsThereIsNothingToCompare) {
  Write("log.json", "");
  EXPECT_THAT(Read(), IsEmpty());
  ASSERT_EQ(told_.size(), 1);
  EXPECT_THAT(told_[0], HasSubstr("there is no log such as resnet_iterdur_1649888832_c1.txt"));
  EXPECT_THROW(RunVariability({{directory_.string()}, ""}, diagnostics_), trainer::Error);
  ReadDurationLogs({(directory_ / "log.json").string()}, diagnostics_);
  EXPECT_THAT(told_, Contains(HasSubstr("log.json: its name is not of the form")));
}

TEST_F(DurationLogsTest, WhatIsNotThereEndsWithTheCodeForIt) {
  try {
    RunVariability({{"/nowhere", "/nowhere/resnet_iterdur_1_c.txt"}, ""}, diagnostics_);
    FAIL();
  } catch (const trainer::Error& error) {
    EXPECT_EQ(error.exit_code(), EX_NOINPUT);
  }
  EXPECT_THAT(told_, ElementsAre("/nowhere: cannot be read: No such file or directory",
                                 HasSubstr("/nowhere/resnet_iterdur_1_c.txt: cannot be read")));
}

TEST_F(DurationLogsTest, NamesADirectoryThatCannotBeReadAndShowsTheRest) {
  for (const char* name : {"a", "b", "c"}) fs::create_directories(directory_ / name);
  const std::string text = "\nIteration Duration 0 0 : 9\n\nIteration Duration 1 0 : 0.5\n";
  Write("a/resnet_iterdur_17_c1.txt", text);
  Write("c/resnet_iterdur_17_c3.txt", text);
  const UnreadableDirectory unreadable(directory_ / "b");
  if (!unreadable.works()) GTEST_SKIP() << "every directory can be read here";
  EXPECT_EQ(Read().size(), 2U);
  EXPECT_THAT(told_, ElementsAre(HasSubstr((directory_ / "b").string() + ": cannot be read")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_NOINPUT);
}

class CompareTest : public tests::DirectoryTest {
 protected:
  static std::string Report(const std::string& name, const std::string& speed) {
    return "{\"name\": \"" + name + "\", \"train_item\": {\"avg\": " + speed + "}}";
  }

  int CodeOfReadTargets(const std::string& path) {
    try {
      ReadTargets(path, diagnostics_);
    } catch (const trainer::Error& error) {
      message_ = error.what();
      return error.exit_code();
    }
    return EX_OK;
  }

  std::string message_;
  std::vector<std::string> told_;
  Diagnostics diagnostics_{[this](const std::string& text) { told_.push_back(text); }};
};

TEST_F(CompareTest, ReadsMilasTable) {
  const Targets targets =
      ReadTargets(Write("v100.csv",
                        "bench,target,perf_target,sd_target\r\nconvnet,215.00,0.5,0.05\r\n\r\n"
                        "scaling,1.00,0.85,0.02\n"),
                  diagnostics_);
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_EQ(targets.size(), 2U);
  EXPECT_EQ(targets.at("convnet").items_per_second, 215);
  EXPECT_EQ(targets.at("convnet").min_share, 0.5);
  EXPECT_EQ(targets.at("scaling").largest_sd, 0.02);
}

TEST_F(CompareTest, ATableMayHaveOtherColumnsInAnotherOrder) {
  const Targets targets = ReadTargets(Write("t.csv", "unit,target,bench\nx,3,a"), diagnostics_);
  EXPECT_EQ(targets.at("a").items_per_second, 3);
  EXPECT_EQ(targets.at("a").min_share, std::nullopt);
  EXPECT_EQ(targets.at("a").largest_sd, std::nullopt);
}

TEST_F(CompareTest, ATableMayBeginWithAByteOrderMark) {
  const Targets targets = ReadTargets(Write("t.csv",
                                            "\xEF\xBB\xBF"
                                            "bench,target\r\na,3\r\n"),
                                      diagnostics_);
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(targets.at("a").items_per_second, 3);
}

TEST_F(CompareTest, NamesRowsThatAreWrongAndKeepsTheRest) {
  const std::string path =
      Write("t.csv", "bench,target\na,1\nb,x\nc\nd,0\ne,-1\na,2\nf,nan\ng,7\n");
  const Targets targets = ReadTargets(path, diagnostics_);
  EXPECT_EQ(targets.size(), 2U);
  EXPECT_EQ(targets.at("a").items_per_second, 1);
  EXPECT_THAT(told_,
              ElementsAre(HasSubstr(path + ":3: target is 'x', which is not a number of 0 or more"),
                          HasSubstr(":4: 1 cells, but the header has 2"),
                          HasSubstr(":5: target is 0"), HasSubstr(":6: target is '-1'"),
                          HasSubstr(":7: a has a row already"), HasSubstr(":8: target")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_DATAERR);
}

TEST_F(CompareTest, RejectsATableThatIsNone) {
  EXPECT_EQ(CodeOfReadTargets((directory_ / "none.csv").string()), EX_NOINPUT);
  EXPECT_EQ(CodeOfReadTargets(Write("empty.csv", "")), EX_DATAERR);
  EXPECT_EQ(CodeOfReadTargets(Write("t.csv", "name,target\na,1\n")), EX_DATAERR);
  EXPECT_THAT(message_, HasSubstr("t.csv:1: the first line must have columns bench and target"));
}

TEST_F(CompareTest, ReadsFilesAndDirectoriesByName) {
  Write("r/fast.convnet.R0.D0.20261123-025723-000123.json", Report("convnet", "200.0"));
  Write("r/deep/fast.convnet.R1.D0.20261123-025723-000124.json", Report("convnet", "210.5"));
  Write("r/results/x/log.json", "DLLL {}");
  const std::string other = Write("any name", Report("vae", "7500"));
  const auto results = ReadReports({(directory_ / "r").string(), other}, diagnostics_);
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_THAT(results, UnorderedElementsAre(Pair("convnet", UnorderedElementsAre(200.0, 210.5)),
                                            Pair("vae", ElementsAre(7500.0))));
}

TEST_F(CompareTest, NamesReportsThatAreNoneAndKeepsTheRest) {
  const std::string half = Write("r/fast.a.R0.D0.1.json", Report("a", "1.0").substr(0, 20));
  Write("r/fast.b.R0.D0.1.json", Report("b", "2.0"));
  Write("r/fast.c.R0.D0.1.json", std::string(70'000, '['));
  Write("r/fast.d.R0.D0.1.json", "{\"name\": \"caf\xe9\", \"train_item\": {\"avg\": 1}}");
  Write("r/fast.e.R0.D0.1.json", "");
  fs::resize_file(directory_ / "r/fast.e.R0.D0.1.json", 20'000'000);
  fs::create_directories(directory_ / "empty");
  const auto results = ReadReports({(directory_ / "r").string(), (directory_ / "empty").string(),
                                    (directory_ / "none").string()},
                                   diagnostics_);
  EXPECT_THAT(results, ElementsAre(Pair("b", ElementsAre(2.0))));
  EXPECT_THAT(told_,
              ElementsAre(HasSubstr(half + ": it is no report of a benchmark of Mila's: it is "
                                           "no JSON; it is left out"),
                          HasSubstr("so long a line is no report's"),
                          HasSubstr("fast.d.R0.D0.1.json: it is no report"),
                          HasSubstr("more than 16 MiB are no report"),
                          HasSubstr("empty: there is no report such as"),
                          HasSubstr("none: cannot be read")));
}

TEST_F(CompareTest, NamesADirectoryThatCannotBeReadAndKeepsTheRest) {
  Write("r/a/fast.a.R0.D0.1.json", Report("a", "1.0"));
  Write("r/b/fast.b.R0.D0.1.json", Report("b", "2.0"));
  Write("r/c/fast.c.R0.D0.1.json", Report("c", "3.0"));
  const UnreadableDirectory unreadable(directory_ / "r/b");
  if (!unreadable.works()) GTEST_SKIP() << "every directory can be read here";
  EXPECT_THAT(ReadReports({(directory_ / "r").string()}, diagnostics_),
              ElementsAre(Pair("a", ElementsAre(1.0)), Pair("c", ElementsAre(3.0))));
  EXPECT_THAT(told_, ElementsAre(HasSubstr((directory_ / "r/b").string() + ": cannot be read")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_NOINPUT);
}

TEST(FormatComparison, HasMeanSpreadDifferenceAndWhetherItPasses) {
  const Targets targets = {{"convnet", {215, 0.5, 0.05}},
                           {"slow", {100, 0.85, 0.05}},
                           {"wild", {100, 0.5, 0.05}},
                           {"plain", {100, std::nullopt, std::nullopt}}};
  EXPECT_EQ(FormatComparison({{"convnet", {200, 204, 208}},
                              {"new", {1}},
                              {"plain", {150}},
                              {"slow", {84}},
                              {"wild", {100, 120}}},
                             targets),
            "| bench                | target    | result    | sd       | sd%    | diff     | runs "
            "| pass |\n"
            "| -------------------- | --------- | --------- | -------- | ------ | -------- | ---- "
            "| ---- |\n"
            "| convnet              | 215.00    | 204.00    | 4.00     | 1.96   | -5.12 %  | 3    "
            "| yes  |\n"
            "| new                  | -         | 1.00      | -        | -      | -        | 1    "
            "| -    |\n"
            "| plain                | 100.00    | 150.00    | -        | -      | +50.00 % | 1    "
            "| -    |\n"
            "| slow                 | 100.00    | 84.00     | -        | -      | -16.00 % | 1    "
            "| no   |\n"
            "| wild                 | 100.00    | 110.00    | 14.14    | 12.86  | +10.00 % | 2    "
            "| no   |\n");
}

TEST_F(CompareTest, NotesWhatHasNoTarget) {
  CompareOptions options;
  options.targets = Write("t.csv", "bench,target\na,1\n");
  options.reports = {Write("b", Report("b", "2"))};
  EXPECT_THAT(Compare(options, diagnostics_), HasSubstr("| b  "));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("note: " + options.targets + " has no target of b")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_OK);
}

}  // namespace
}  // namespace bench
