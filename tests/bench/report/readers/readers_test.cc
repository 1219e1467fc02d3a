// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/gpu_samples_reader.h"
#include "bench/report/readers/log_reader.h"
#include "bench/report/readers/rank_times_reader.h"
#include "bench/report/readers/read_run.h"
#include "bench/report/readers/run.h"
#include "tests/bench/report/report_test_directory.h"
#include "tests/support/test.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/formats/variability_files.h"

namespace bench {
namespace {

constexpr char kTitles[] =
    "==4711== NVPROF is profiling process 4711\n"
    "\"Start\",\"Duration\",\"Grid X\",\"Device\",\"System\",\"Name\",\"Correlation_ID\"\n";

class GpuSamplesTest : public ReportDirectoryTest {
 protected:
  static std::string Row(const std::string& start, int gpu, const std::string& value,
                         const std::string& name) {
    return start + ",,,\"Tesla V100-SXM2-16GB (" + std::to_string(gpu) + ")\",\"" + value +
           "\",\"[" + name + "]\",\n";
  }
};

TEST_F(GpuSamplesTest, AreThoseOfEachGpu) {
  const auto path = Write(
      "gpu.csv",
      std::string(kTitles) + "s,ms,,,,,\n" + Row("0.5", 0, "1530/877", "SM/Memory Clock (MHz)") +
          "0.6,0.1,80,\"Tesla V100-SXM2-16GB (0)\",,\"void kernel<a, \"\"b\"\">(int)\",12\n" +
          Row("0.5", 0, "41", "Temperature (C)") +
          Row("1.0", 0, "100000/300000", "Power/Limit (mW)") +
          Row("2.0", 0, "200000/300000", "Power/Limit (mW)") +
          Row("4.0", 0, "300000/300000", "Power/Limit (mW)") +
          Row("1.5", 1, "1380/877", "SM/Memory Clock (MHz)"));
  const auto gpus = ReadGpuSamples(path, diagnostics_);
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].name, "Tesla V100-SXM2-16GB (0)");
  EXPECT_THAT(gpus[0].sm_clock.points(), ElementsAre(SeriesPoint{0.5, 1530, 1530, 1530, 1}));
  EXPECT_THAT(gpus[0].memory_clock.points(), ElementsAre(SeriesPoint{0.5, 877, 877, 877, 1}));
  EXPECT_THAT(gpus[0].temperature.points(), ElementsAre(SeriesPoint{0.5, 41, 41, 41, 1}));
  EXPECT_EQ(gpus[0].power.count(), 3);
  EXPECT_DOUBLE_EQ(gpus[0].energy, 150 + 2 * 250);
  EXPECT_DOUBLE_EQ(gpus[0].power_seconds, 3);
  EXPECT_EQ(gpus[1].sm_clock.points().front().mean, 1380);
}

TEST_F(GpuSamplesTest, AreReadFromWhatATrainingWrites) {
  trainer::DeviceState state;
  state.compute_mhz = 1980;
  state.memory_mhz = 3201;
  state.celsius = 61;
  state.milliwatts = 512'345;
  state.limit_milliwatts = 700'000;
  const std::string gpu = "NVIDIA H200 (1)";
  const auto path = Write("resnet_7_1795343400_c1-7.csv",
                          trainer::NvprofHead(7, "ddltraind") +
                              trainer::NvprofKernel(gpu, 0.1, 0.002, "update(int, float)", 1) +
                              trainer::NvprofState(gpu, 0.25, state));
  const auto gpus = ReadGpuSamples(path, diagnostics_);
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_EQ(gpus[0].name, gpu);
  EXPECT_THAT(gpus[0].sm_clock.points(), ElementsAre(SeriesPoint{0.25, 1980, 1980, 1980, 1}));
  EXPECT_EQ(gpus[0].memory_clock.points().front().mean, 3201);
  EXPECT_EQ(gpus[0].temperature.points().front().mean, 61);
  EXPECT_EQ(gpus[0].power.points().front().mean, 512.345);
}

TEST_F(GpuSamplesTest, KnowTheUnitOfTheirTimes) {
  const auto gpus = ReadGpuSamples(Write("gpu.csv", std::string(kTitles) + "ms,us,,,,,\n" +
                                                        Row("500", 0, "41", "Temperature (C)")),
                                   diagnostics_);
  EXPECT_EQ(gpus.at(0).temperature.points().front().x, 0.5);
}

TEST_F(GpuSamplesTest, NameRowsThatAreWrong) {
  const auto path =
      Write("gpu.csv", std::string(kTitles) + "s,ms,,,,,\n" + Row("x", 0, "41", "Temperature (C)") +
                           Row("1", 0, "-4", "Temperature (C)") + "1,\"[Temperature (C)]\"\n" +
                           Row("1", 0, "41", "Temperature (C)") + "2,,,\"Tes");
  EXPECT_EQ(ReadGpuSamples(path, diagnostics_).at(0).temperature.count(), 1);
  EXPECT_THAT(told_,
              ElementsAre(HasSubstr("gpu.csv:4: 'x' is not a number of 0 or more"),
                          HasSubstr(":5: '-4' is not a number of 0 or more"),
                          HasSubstr(":6: 2 cells, but the titles are 7"), HasSubstr("note: ")));
  EXPECT_THAT(told_.back(), HasSubstr("gpu.csv:8: the file ends within this line"));
}

TEST_F(GpuSamplesTest, AreNoneOfOtherTables) {
  EXPECT_THAT(ReadGpuSamples(Write("t.csv", "bench,target\na,1\n"), diagnostics_), IsEmpty());
  EXPECT_THAT(ReadGpuSamples(Write("t.csv", ""), diagnostics_), IsEmpty());
  EXPECT_THAT(told_, IsEmpty());
  ReadGpuSamples(Write("t.csv", std::string(kTitles) + "hours,,,,,,\n"), diagnostics_);
  EXPECT_THAT(told_, ElementsAre(HasSubstr("t.csv:3: the unit of Start is 'hours'")));
}

class RankTimesTest : public ReportDirectoryTest {
 protected:
  static std::string Event(const std::string& name, const std::string& category, double duration,
                           int rank) {
    return "{\"name\": \"" + name + "\", \"cat\": \"" + category +
           "\", \"ph\": \"X\", \"ts\": 1.0, \"dur\": " + std::to_string(duration) +
           ", \"pid\": " + std::to_string(rank) + ", \"tid\": 1, \"args\": {\"step\": 7}},\n";
  }
};

TEST_F(RankTimesTest, AreMeansOverTheStepsOfATrace) {
  const auto path = Write(
      "trace.json",
      "{\"traceEvents\": [\n"
      "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": 0, \"args\": {\"name\": "
      "\"rank 1 on gpu025\"}},\n" +
          Event("step", "step", 3000, 1) + Event("forward", "phase", 1000, 1) +
          Event("backward", "phase", 1500, 1) + Event("step", "step", 5000, 1) +
          Event("forward", "phase", 3000, 1) + Event("image", "input", 9999, 1) +
          Event("all-reduce", "communication", 9999, 1) + Event("step", "step", 2000, 0) +
          "{\"name\": \"update\", \"cat\": \"phase\", \"dur\": 500, \"pid\": 0}\n"
          "], \"displayTimeUnit\": \"ms\"}\n");
  const auto times = ReadTrace(path, diagnostics_);
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times.at(1).host, "gpu025");
  EXPECT_EQ(times.at(1).steps, 2);
  EXPECT_DOUBLE_EQ(times.at(1).step, 0.004);
  EXPECT_DOUBLE_EQ(times.at(1).phases[1], 0.002);    // forward
  EXPECT_DOUBLE_EQ(times.at(1).phases[2], 0.00075);  // backward, in one of two steps
  EXPECT_DOUBLE_EQ(times.at(0).phases[4], 0.0005);
}

TEST_F(RankTimesTest, NameWhatIsWrongInATrace) {
  const auto path =
      Write("trace.json",
            Event("step", "step", 1, -3) + "{\"cat\": \"phase\"\n" + Event("step", "step", -1, 0) +
                "{\"cat\": \"phase\", \"pid\": 1e300}\n" + Event("step", "step", 1, 2));
  EXPECT_EQ(ReadTrace(path, diagnostics_).size(), 1U);
  EXPECT_THAT(
      told_,
      ElementsAre(HasSubstr("trace.json:1: its pid is no rank"), HasSubstr(":2: it is no event"),
                  HasSubstr(":3: its dur is no time"), HasSubstr(":4: it has no pid")));
  told_.clear();
  EXPECT_THAT(ReadTrace(Write("trace.json", "{}"), diagnostics_), IsEmpty());
  EXPECT_THAT(told_, ElementsAre(HasSubstr("trace.json: it has no step")));
  EXPECT_THROW(ReadTrace(directory_, diagnostics_), trainer::Error);
}

TEST_F(RankTimesTest, AreReadFromFilesForPrometheus) {
  std::map<int, RankTimes> times;
  ReadPrometheusFile(
      Write("ddltraind-rank-00003.prom",
            "# HELP ddltraind_step_seconds Mean time.\n"
            "ddltraind_running{rank=\"3\",host=\"gpu025\"} 1\n"
            "ddltraind_step_seconds{rank=\"3\",host=\"gpu025\"} 0.25\n"
            "ddltraind_phase_seconds{rank=\"3\",host=\"gpu025\",phase=\"input_wait\"} 0.05\n"
            "ddltraind_phase_seconds{rank=\"3\",host=\"gpu025\",phase=\"exposed_all_reduce\"} 0.1\n"
            "# EOF\n"),
      times, diagnostics_);
  EXPECT_THAT(told_, IsEmpty());
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times.at(3).host, "gpu025");
  EXPECT_EQ(times.at(3).step, 0.25);
  EXPECT_THAT(times.at(3).phases, ElementsAre(0.05, 0, 0, 0.1, 0));
}

TEST_F(RankTimesTest, HaveNoneOfARankWithoutSteps) {
  std::map<int, RankTimes> times;
  ReadPrometheusFile(Write("a.prom", "ddltraind_running{rank=\"3\",host=\"a\"} 1\n"), times,
                     diagnostics_);
  EXPECT_THAT(told_, IsEmpty());
  ReadPrometheusFile(Write("b.prom", "node_load1 0.5\n} {\n{rank=\"x\"} 1\n"), times, diagnostics_);
  EXPECT_THAT(told_, ElementsAre(HasSubstr("b.prom: it has no metric of ddltraind's")));
  EXPECT_THAT(times, IsEmpty());
}

class RunFilesTest : public ReportDirectoryTest {
 protected:
  std::vector<std::string> Found(const std::vector<std::string>& names) {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back((directory_ / name).string());
    std::vector<std::string> found;
    files_ = FindRuns(paths, diagnostics_);
    for (const RunFiles& files : files_) {
      found.push_back(fs::path(files.path).lexically_relative(directory_).string());
    }
    return found;
  }
  std::vector<RunFiles> files_;
};

TEST_F(RunFilesTest, AreFoundHoweverDeepByName) {
  Write("sweep/1n2g/results/b/log.json", "");
  Write("sweep/1n1g/results/a/log.json", "");
  Write("sweep/1n1g/a.log", "");
  Write("sweep/old/training.json", "");
  EXPECT_THAT(Found({"sweep"}),
              ElementsAre("sweep/1n1g/results/a", "sweep/1n2g/results/b", "sweep/old"));
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(RunFilesTest, AreAllThatARunLeft) {
  Write("run/log.json", "");
  Write("run/training.json", "");
  Write("run/trace.json", "");
  Write("run/metrics/ddltraind-rank-00000.prom", "");
  Write("run/ddltraind-rank-00001.prom", "");
  Write("run/gpu.csv", "");
  Write("run/other/log.json", "");
  Write("run/other/gpu.csv", "");
  EXPECT_THAT(Found({"run/"}), ElementsAre("run"));
  EXPECT_EQ(files_[0].log.filename(), "log.json");
  EXPECT_EQ(files_[0].training_json.filename(), "training.json");
  EXPECT_EQ(files_[0].trace.filename(), "trace.json");
  EXPECT_EQ(files_[0].prometheus.size(), 2U);
  EXPECT_EQ(files_[0].gpu_samples.size(), 1U);
}

TEST_F(RunFilesTest, MayBeNamedByTheirLogs) {
  Write("run/log.json", "");
  Write("slurm-1.out", "");
  EXPECT_THAT(Found({"run/log.json", "slurm-1.out"}), ElementsAre("run", "slurm-1.out"));
}

TEST_F(RunFilesTest, AreNamedWhereThereAreNone) {
  fs::create_directories(directory_ / "empty/in/it");
  Write("run/log.json", "");
  EXPECT_THAT(Found({"empty", "nowhere", "run", "run/../run"}), ElementsAre("run"));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("empty: there is no run in it"),
                                 HasSubstr("nowhere: there is no such directory"),
                                 HasSubstr("is named twice; it counts once")));
  EXPECT_EQ(diagnostics_.exit_code(), EX_DATAERR);
}

TEST_F(RunFilesTest, ARunIsWhatCanBeReadOfIt) {
  Write("run/log.json", LoggedOptions(R"("batch_size": 8)"));
  Write("run/trace.json", "{\"cat\": \"step\"");
  Write("run/ddltraind-rank-00001.prom", "ddltraind_step_seconds{rank=\"1\",host=\"a\"} 0.25\n");
  Found({"run"});
  const auto run = ReadRun(files_[0], 0, diagnostics_);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->times_from, "files for Prometheus");
  EXPECT_EQ(run->ranks, 1);
  EXPECT_THAT(told_, ElementsAre(HasSubstr("trace.json:1: "), HasSubstr("it has no step; "),
                                 HasSubstr("run: it has no step, so there is no speed")));
}

TEST_F(RunFilesTest, ARunOfNothingIsNone) {
  Write("run/log.json", "no words of ours\n");
  Found({"run"});
  EXPECT_FALSE(ReadRun(files_[0], 0, diagnostics_));
  fs::remove(directory_ / "run/log.json");
  EXPECT_FALSE(ReadRun(files_[0], 0, diagnostics_));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("no line of DLLogger's"), HasSubstr("cannot be read")));
}

TEST(ThinnedSeries, KeepsWhatFits) {
  ThinnedSeries series(4);
  for (int i = 0; i < 4; ++i) series.Add(10 + i, 2 * i);
  EXPECT_EQ(series.stretch(), 1);
  EXPECT_THAT(series.points(),
              ElementsAre(SeriesPoint{10, 0, 0, 0, 1}, SeriesPoint{11, 2, 2, 2, 1},
                          SeriesPoint{12, 4, 4, 4, 1}, SeriesPoint{13, 6, 6, 6, 1}));
}

TEST(ThinnedSeries, JoinsNeighboursWhenItIsFull) {
  ThinnedSeries series(4);
  for (int i = 0; i < 7; ++i) series.Add(i, i);
  EXPECT_EQ(series.stretch(), 2);
  EXPECT_EQ(series.count(), 7);
  EXPECT_THAT(series.points(),
              ElementsAre(SeriesPoint{0.5, 0.5, 0, 1, 2}, SeriesPoint{2.5, 2.5, 2, 3, 2},
                          SeriesPoint{4.5, 4.5, 4, 5, 2}, SeriesPoint{6, 6, 6, 6, 1}));
}

TEST(ThinnedSeries, StaysShortAndKeepsMeanAndExtremes) {
  ThinnedSeries series(8);
  for (int i = 0; i < 100'003; ++i) series.Add(i, i % 1000 == 999 ? 5 : 1);
  EXPECT_LE(series.points().size(), 8U);
  const SeriesPoint all = Thinned(series.points(), 1).front();
  EXPECT_EQ(all.count, 100'003);
  EXPECT_NEAR(all.mean, 1 + 4 * 100.0 / 100'003, 1e-12);
  EXPECT_NEAR(all.x, 50'001, 1e-6);
  EXPECT_EQ(all.min, 1);
  EXPECT_EQ(all.max, 5);
}

TEST(ThinnedSeries, RejectsAnOddCapacity) {
  EXPECT_THROW(ThinnedSeries(3), trainer::Error);
  EXPECT_THROW(ThinnedSeries(0), trainer::Error);
}

TEST(Thinned, TakesEquallyManyTogether) {
  const std::vector<SeriesPoint> points = {{0, 1, 1, 1, 1}, {1, 3, 3, 3, 1}, {2, 8, 8, 8, 1}};
  EXPECT_EQ(Thinned(points, 3), points);
  EXPECT_THAT(Thinned(points, 2),
              ElementsAre(SeriesPoint{0.5, 2, 1, 3, 2}, SeriesPoint{2, 8, 8, 8, 1}));
  EXPECT_THAT(Thinned({}, 2), ElementsAre());
}

TEST(BatchMeans, AreTheObservationsOfAShortRow) {
  ThinnedSeries series;
  for (int i = 0; i < 39; ++i) series.Add(i, i);
  EXPECT_EQ(BatchMeans(series).size(), 39U);
  EXPECT_EQ(BatchMeans(series).back(), 38);
  EXPECT_TRUE(BatchMeans(ThinnedSeries()).empty());
}

TEST(BatchMeans, AreTwentyOfALongOneAndLeaveOutTheRest) {
  ThinnedSeries series;
  for (int i = 0; i < 65; ++i) series.Add(i, i);
  const std::vector<double> means = BatchMeans(series);
  ASSERT_EQ(means.size(), kBatches);
  EXPECT_EQ(means[0], 1);    // of 0, 1, 2
  EXPECT_EQ(means[19], 58);  // of 57, 58, 59
}

TEST(BatchMeans, LeaveOutAStretchThatIsNotFull) {
  ThinnedSeries series(64);
  for (int i = 0; i < 161; ++i) series.Add(i, 2);
  series.Add(161, 1000);
  EXPECT_EQ(series.stretch(), 4);
  EXPECT_EQ(BatchMeans(series), std::vector<double>(kBatches, 2));
}

TEST(QuantileSample, InterpolatesAsNumpyDoes) {
  QuantileSample sample;
  for (const double value : {4.0, 1.0, 3.0, 2.0}) sample.Add(value);
  EXPECT_THAT(sample.Quantiles({0, 0.5, 0.95, 1}),
              ElementsAre(1, 2.5, ::testing::DoubleEq(3.85), 4));
  EXPECT_EQ(sample.stride(), 1);
}

TEST(QuantileSample, KeepsEverySecondOfTooMany) {
  QuantileSample sample(4);
  for (int i = 0; i < 9; ++i) sample.Add(i);
  // 0 2 4 6, then 0 4 and 8
  EXPECT_EQ(sample.stride(), 4);
  EXPECT_THAT(sample.Quantiles({0, 0.5, 1}), ElementsAre(0, 4, 8));
}

TEST(QuantileSample, NeedsAnObservation) {
  EXPECT_THROW(QuantileSample().Quantiles({0.5}), trainer::Error);
}

class TrainingJsonTest : public ReportDirectoryTest {
 protected:
  RunMeasures Read(const std::string& text) {
    RunRecord run;
    ReadTrainingJson(Write("training.json", text), run, diagnostics_);
    return run.measures;
  }
};

TEST_F(TrainingJsonTest, HasTheIterationsOfAllEpochs) {
  const RunMeasures measures = Read(
      R"({"run": {}, "epoch": {}, "iter": {"x": [[0, 1], [0], []], "iteration": [[0, 1], [2], []],)"
      R"("imgs_per_sec": [[10.0, 20.0], [40.0], []], "cross_entropy": [[3.0, NaN], [2.0], []]}})");
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(measures.last_step, 2);
  EXPECT_EQ(measures.seconds_per_image_statistics.Sample().count, 3U);
  EXPECT_DOUBLE_EQ(measures.seconds_per_image_statistics.Sample().mean, (0.1 + 0.05 + 0.025) / 3);
  EXPECT_EQ(measures.strange_losses, 1);
  EXPECT_EQ(measures.last_cross_entropy, 2);
}

TEST_F(TrainingJsonTest, NamesWhatIsNone) {
  EXPECT_EQ(Read("{\"iter\": ").last_step, -1);
  EXPECT_EQ(Read("[]").last_step, -1);
  EXPECT_EQ(Read("{\"iter\": {\"iteration\": [[1]]}}").last_step, -1);
  Write("large/training.json", "");
  fs::resize_file(directory_ / "large/training.json", 650000000ULL);
  RunRecord run;
  ReadTrainingJson(directory_ / "large/training.json", run, diagnostics_);
  ReadTrainingJson(directory_ / "large", run, diagnostics_);
  EXPECT_THAT(
      told_,
      ElementsAre(HasSubstr("it is no training.json"), HasSubstr("it is no training.json"),
                  HasSubstr("its rows are of different lengths"),
                  HasSubstr("more than 64 MiB are left out"), HasSubstr("it is no regular file")));
}

}  // namespace
}  // namespace bench
