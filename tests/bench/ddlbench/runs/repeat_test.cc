// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/repeat.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/microbenchmarks/loader.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_directory.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

class RepeatProgressTest : public ::testing::Test {
 protected:
  void Append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  // Of a step that takes so long at 64 images.
  static std::string StepLines(int iteration, double seconds, double loss) {
    const auto line = [](const std::string& key, double value) {
      return fmt::format(":::NVLOGv0.2.3 resnet 1.5 (training_hooks.py:100) {}: {}\n", key, value);
    };
    return line("iteration", iteration) + line("imgs_per_sec", 64 / seconds) +
           line("cross_entropy", loss);
  }

  // What is printed now.
  std::string Shown() {
    out_.str("");
    progress_->Show();
    return out_.str();
  }

  void Start(int repeat, int number) { progress_.emplace(path_, 64, repeat, number, out_); }

  const TemporaryDirectory directory_;
  const fs::path path_ = directory_ / "log";
  std::ostringstream out_;
  std::optional<RepeatProgress> progress_;
};

TEST_F(RepeatProgressTest, HasAPrefixWhereItIsGivenOne) {
  Append(StepLines(0, 40, 7.5));
  progress_.emplace(path_, 64, 13, 1, out_, "D3 ");
  EXPECT_THAT(Shown(), StartsWith("D3 [  0/ 13] | ETA: "));
}

TEST_F(RepeatProgressTest, HasALineForEachObservationOnce) {
  Append("");
  Start(13, 2);
  EXPECT_EQ(Shown(), "");
  Append(StepLines(0, 40, 7.5));
  EXPECT_EQ(Shown(), "");
  const std::string second = StepLines(1, 20, 7.25);
  Append(second.substr(0, second.size() - 1));
  EXPECT_EQ(Shown(), "");
  Append("\n");
  EXPECT_EQ(Shown(), "[  0/ 13] | ETA:  12.00 min | Batch Loss   7.2500\n");  // 12 x 60 s
  EXPECT_EQ(Shown(), "");
  Append(StepLines(2, 1, 7) + StepLines(3, 2, 6.5) + StepLines(4, 1, 6) + StepLines(5, 5, 5.5));
  EXPECT_EQ(Shown(),
            "[  1/ 13] | ETA:   0.55 min | Batch Loss   6.5000\n"    // 11 x 3 s
            "[  2/ 13] | ETA:   1.00 min | Batch Loss   5.5000\n");  // 10 x 6 s
}

// The first ten observations take 3 s, the others 60, 120 and 180 s.
TEST_F(RepeatProgressTest, FromTheEleventhObservationOnTheMeanCounts) {
  for (int i = 0; i < 10; ++i) Append(StepLines(i, 3, 1));
  Append(StepLines(10, 60, 1) + StepLines(11, 120, 1) + StepLines(12, 180, 1));
  Start(15, 1);
  EXPECT_THAT(Shown(), EndsWith("[  9/ 15] | ETA:   0.25 min | Batch Loss   1.0000\n"
                                "[ 10/ 15] | ETA:   4.00 min | Batch Loss   1.0000\n"
                                "[ 11/ 15] | ETA:   4.50 min | Batch Loss   1.0000\n"
                                "[ 12/ 15] | ETA:   4.00 min | Batch Loss   1.0000\n"));
}

TEST_F(RepeatProgressTest, StepsBeyondTheLastObservationHaveNoLine) {
  for (int i = 0; i < 13; ++i) Append(StepLines(i, 3, 1));
  Start(12, 1);
  EXPECT_THAT(Shown(), EndsWith("[ 11/ 12] | ETA:   0.00 min | Batch Loss   1.0000\n"));
}

TEST_F(RepeatProgressTest, IsSilentFromAWrongLineOn) {
  Append(StepLines(0, 3, 1) + StepLines(7, 3, 1));
  Start(12, 1);
  EXPECT_THAT(Shown(), StartsWith("[  0/ 12]"));
  Append(StepLines(1, 3, 1));
  EXPECT_EQ(Shown(), "");
}

TEST_F(RepeatProgressTest, IsSilentWithoutALog) {
  Start(12, 1);
  EXPECT_EQ(Shown(), "");
}

RepeatOutcome MakeOutcome(std::size_t observations, double seconds) {
  RepeatOutcome outcome;
  outcome.run.suite = "fast";
  outcome.run.name = "convnet";
  outcome.run.batch_size = 64;
  outcome.run.repeat = 12;
  outcome.run.number = 5;
  outcome.run.vcd = "3";
  outcome.start = 1'795'402'643'000'123;
  outcome.observations.assign(observations, seconds);
  return outcome;
}

TEST(RepeatOutcome, HasTimesWhereAnObservationCounts) {
  EXPECT_FALSE(MakeOutcome(10, 2).times());
  ASSERT_TRUE(MakeOutcome(11, 2).times());
  EXPECT_EQ(MakeOutcome(11, 2).times()->items_avg, 160);
}

TEST(FormatObservations, HasStatisticsWhereThereAreSome) {
  EXPECT_THAT(FormatObservations(MakeOutcome(12, 2)),
              AllOf(HasSubstr("| 10 (warm-up) | 2.0000   | 160.00    |\n"),
                    HasSubstr("| 12          | 2.0000   | 160.00    |\n"),
                    HasSubstr("| s      | 2.0000    | 0.0000    | 2.0000    | 2.0000    | 2 "
                              "    |\n")));
  EXPECT_THAT(FormatObservations(MakeOutcome(3, 2)), Not(HasSubstr("| train")));
}

TEST(FormatMemcpy, HasEachAndTheirSum) {
  std::vector<RepeatOutcome> copies = {MakeOutcome(12, 2), MakeOutcome(12, 4), MakeOutcome(5, 1)};
  copies[1].run.vcd = "7";
  EXPECT_EQ(FormatMemcpy(copies),
            "| device | s         | sd        | images/s  |\n"
            "| ------ | --------- | --------- | --------- |\n"
            "| 3      | 2.0000    | 0.0000    | 160.00    |\n"
            "| 7      | 4.0000    | 0.0000    | 80.00     |\n"
            "| all    |           |           | 240.00    |\n");
}

TEST(WriteMilaReport, NamesARunThatHasFailed) {
  const TemporaryDirectory temporary;
  const fs::path directory = temporary / "reports";
  RepeatOutcome outcome = MakeOutcome(4, 2);
  outcome.run.completed = false;
  const fs::path failed = WriteMilaReport(outcome, directory);
  EXPECT_EQ(failed, directory / "fast.convnet.R0.D3.FAIL.20261123-025723-000123.json");
  const auto report = nlohmann::json::parse(std::ifstream(failed));
  EXPECT_EQ(report["completed"], false);
  EXPECT_FALSE(report.contains("train"));
  EXPECT_FALSE(report.contains("train_item"));
  outcome = MakeOutcome(12, 2);
  const fs::path path = WriteMilaReport(outcome, directory);
  EXPECT_EQ(path, directory / "fast.convnet.R0.D3.20261123-025723-000123.json");
  EXPECT_THAT(FormatSaved(outcome, path), HasSubstr("\nSaving report to " + path.string()));
}

const Programs kRepeatPrograms = {"/bin/ddlbench", "/bin/ddlrun", "/bin/ddltraind"};

std::string RepeatRejection(const std::function<void(RepeatOptions&)>& change) {
  RepeatOptions options = WithMilaDefaults({}, "");
  change(options);
  return tests::Rejection<trainer::Error>(EX_USAGE, [&] { CheckRepeatOptions(options); });
}

TEST(RepeatCommand, IsMilasConvnetByDefault) {
  EXPECT_THAT(RepeatCommand(WithMilaDefaults({}, "0,1"), kRepeatPrograms, "/w/results/x"),
              ElementsAre("/bin/ddlrun", "-n", "1", "/bin/ddltraind", "--mode=training_benchmark",
                          "--arch=resnet101", "--iter_unit=batch", "--num_iter=75",
                          "--warmup_steps=50", "--display_every=1", "--batch_size=64",
                          "--lr_init=0.1", "--precision=fp32", "--results_dir=/w/results/x"));
}

TEST(RepeatCommand, SharesTheBatchOverTheRanks) {
  RepeatOptions options = WithMilaDefaults({}, "");
  options.devices = 4;
  options.half = true;
  options.data_dir = "/images";
  options.ddlrun = {"--tcp"};
  options.trainer = {"--image_size=64"};
  const std::vector<std::string> command = RepeatCommand(options, kRepeatPrograms, "/w");
  EXPECT_EQ(command[2], "4");
  EXPECT_EQ(command[3], "--tcp");
  EXPECT_THAT(command, AllOf(Contains("--batch_size=16"), Contains("--precision=fp16")));
  EXPECT_THAT(command, Contains("--data_dir=/images"));
  EXPECT_EQ(command.back(), "--image_size=64");
}

TEST(CheckRepeatOptions, RejectsWhatMakesNoSense) {
  EXPECT_EQ(RepeatRejection([](auto&) {}), "");
  EXPECT_EQ(RepeatRejection([](auto& o) { o.repeat = 11; }), "");
  EXPECT_THAT(RepeatRejection([](auto& o) { o.repeat = 10; }),
              HasSubstr("--repeat must be more than 10"));
  EXPECT_THAT(RepeatRejection([](auto& o) { o.number = 0; }), HasSubstr("--number"));
  EXPECT_THAT(RepeatRejection([](auto& o) { o.number = 100'000; }), HasSubstr("--number"));
  EXPECT_THAT(RepeatRejection([](auto& o) { o.devices = 3; }),
              HasSubstr("multiple of --devices=3"));
  EXPECT_THAT(RepeatRejection([](auto& o) { o.devices = 0; }), HasSubstr("--devices"));
  EXPECT_THAT(RepeatRejection([](auto& o) { o.batch_size = 0; }), HasSubstr("--batch_size"));
  EXPECT_THAT(RepeatRejection([](auto& o) { o.suite = "a.b"; }), HasSubstr("--suite"));
  EXPECT_THAT(RepeatRejection([](auto& o) { o.name = "../x"; }), HasSubstr("--name"));
  EXPECT_THAT(RepeatRejection([](auto& o) { o.name = ""; }), HasSubstr("--name"));
  EXPECT_THAT(RepeatRejection([](auto& o) { o.copies = 0; }), HasSubstr("--copies=0"));
  EXPECT_EQ(RepeatRejection([](auto& o) { o.copies = 4; }), "");
  EXPECT_THAT(RepeatRejection([](auto& o) { o.copies = o.devices = 2; }), HasSubstr("--devices=2"));
  EXPECT_THAT(RepeatRejection([](auto& o) {
                o.copies = 2;
                o.ddlrun = {"--tcp"};
              }),
              HasSubstr("leave out --ddlrun"));
  EXPECT_THAT(RepeatRejection([](auto& o) { o.name = "loader"; }), HasSubstr("--data_dir"));
  const auto rejection_of_loader = [](const std::function<void(RepeatOptions&)>& change) {
    return RepeatRejection([&](RepeatOptions& o) {
      o.name = "loader";
      o.data_dir = "/images";
      change(o);
    });
  };
  EXPECT_EQ(rejection_of_loader([](auto&) {}), "");
  EXPECT_THAT(rejection_of_loader([](auto& o) { o.copies = 2; }), HasSubstr("trains nothing"));
  EXPECT_THAT(rejection_of_loader([](auto& o) { o.devices = 2; }), HasSubstr("trains nothing"));
  EXPECT_THAT(rejection_of_loader([](auto& o) { o.ddlrun = {"-v"}; }), HasSubstr("trains nothing"));
  EXPECT_THAT(rejection_of_loader([](auto& o) { o.trainer = {"-v"}; }),
              HasSubstr("trains nothing"));
}

TEST(WithMilaDefaults, AreThoseOfTheBenchmarkUnlessTheyAreGiven) {
  const auto resolved = [](const std::string& name, const std::string& visible) {
    return WithMilaDefaults({.name = name}, visible);
  };
  EXPECT_EQ(resolved("convnet", "0,1").batch_size, 64);
  EXPECT_EQ(resolved("convnet", "0,1").devices, 1);
  EXPECT_FALSE(resolved("convnet", "").half);
  EXPECT_EQ(resolved("convnet_fp16", "").batch_size, 128);
  EXPECT_TRUE(resolved("convnet_fp16", "").half);
  EXPECT_EQ(resolved("convnet_distributed", "0,1,2,3").devices, 4);
  EXPECT_EQ(resolved("loader", "0,1").devices, 1);
  EXPECT_EQ(resolved("loader", "").batch_size, 256);
  EXPECT_THROW(resolved("convnet_distributed", ""), trainer::Error);
  RepeatOptions given{.name = "convnet_distributed_fp16", .batch_size = 8, .devices = 2};
  EXPECT_EQ(WithMilaDefaults(given, "0,1,2,3").batch_size, 8);
  EXPECT_EQ(WithMilaDefaults(given, "0,1,2,3").devices, 2);
}

TEST(RepeatCommand, OfSeveralCopiesIsTheTrainerItself) {
  RepeatOptions options = WithMilaDefaults({}, "");
  options.copies = 2;
  const std::vector<std::string> command = RepeatCommand(options, kRepeatPrograms, "/w");
  EXPECT_EQ(command.front(), "/bin/ddltraind");
  EXPECT_THAT(command, Contains("--batch_size=64"));
}

TEST(DeviceOfCopy, IsThatOfItsPlace) {
  EXPECT_EQ(DeviceOfCopy("", 2, 4), "2");
  EXPECT_EQ(DeviceOfCopy("4,5,7", 2, 3), "7");
  EXPECT_EQ(DeviceOfCopy("GPU-8f3a,GPU-99", 1, 2), "GPU-99");
  EXPECT_THROW(DeviceOfCopy("4,5,7", 0, 4), trainer::Error);
}

TEST(CpusOfCopy, AreAnEvenShareSideBySide) {
  const std::vector<int> cpus = {0, 1, 2, 3, 8, 9, 10};
  EXPECT_THAT(CpusOfCopy(cpus, 0, 2), ElementsAre(0, 1, 2));
  EXPECT_THAT(CpusOfCopy(cpus, 1, 2), ElementsAre(3, 8, 9, 10));
  EXPECT_THAT(CpusOfCopy(cpus, 6, 7), ElementsAre(10));
  EXPECT_EQ(CpusOfCopy(cpus, 3, 8), cpus);
}

TEST(DescribeMilaRun, OfACopyHasItsDeviceAndCores) {
  RepeatOptions options = WithMilaDefaults({}, "");
  MilaSurroundings surroundings{.visible_devices = "4,5", .cpus = {0, 1, 2, 3, 4, 5}};
  EXPECT_EQ(DescribeMilaRun(options, surroundings, 0).vcd, "4,5");
  EXPECT_EQ(DescribeMilaRun(options, surroundings, 0).cpu_cores, 6);
  options.copies = 2;
  EXPECT_EQ(DescribeMilaRun(options, surroundings, 1).vcd, "5");
  EXPECT_EQ(DescribeMilaRun(options, surroundings, 1).cpu_cores, 3);
  EXPECT_FALSE(DescribeMilaRun(options, surroundings, 1).is_loader);
  // mlbench-report reads numbers only.
  surroundings.visible_devices = "GPU-8f3a,GPU-99";
  EXPECT_EQ(DescribeMilaRun(options, surroundings, 1).vcd, "1");
  options.copies = 1;
  options.name = "loader";
  EXPECT_TRUE(DescribeMilaRun(options, surroundings, 0).is_loader);
}

TEST(VisibleDevices, AreNumbers) {
  EXPECT_EQ(VisibleDevices("", 1), "0");
  EXPECT_EQ(VisibleDevices("", 3), "0,1,2");
  EXPECT_EQ(VisibleDevices("2,3", 1), "2,3");
  EXPECT_EQ(VisibleDevices("GPU-8f3a,GPU-99", 2), "0,1");
  for (const std::string text : {",", "1,", ",1", "1,,2", "-1"}) {
    EXPECT_EQ(VisibleDevices(text, 1), "0") << text;
  }
}

TEST(FormatLoader, HasTheMedianOfTheRoundsAndThatOfAThread) {
  LoaderOptions options{.steps = 20, .rounds = 3};
  const std::vector<LoaderSpeeds> all = {{1, {100, 120, 80}, {}}, {4, {400, 300, 360}, {}}};
  EXPECT_EQ(FormatLoader(options, all, 2),
            "2 ranks, each with batches of 256 images of 224 pixels; 3 rounds of 20 steps\n\n"
            "| threads | images/s  | per thread | min       | max       |\n"
            "| ------- | --------- | ---------- | --------- | --------- |\n"
            "| 1       | 100.0     | 50.0       | 80.0      | 120.0     |\n"
            "| 4       | 360.0     | 45.0       | 300.0     | 400.0     |\n");
}

TEST(FormatLoader, HasTheShareOfTheRateOfAllRanksAndTheMedianWait) {
  const std::vector<LoaderSpeeds> all = {{4, {400, 300, 360}, {0.5, 2, 1.25}}};
  EXPECT_EQ(
      FormatLoader({.rounds = 3, .take_rate = 200}, all, 2),
      "2 ranks, each with batches of 256 images of 224 pixels, taken at 200 images/s; "
      "3 rounds of 20 steps\n\n"
      "| threads | images/s  | per thread | min       | max       | % of rate | waited, s |\n"
      "| ------- | --------- | ---------- | --------- | --------- | --------- | --------- |\n"
      "| 4       | 360.0     | 45.0       | 300.0     | 400.0     | 90.0      | 1.250     |\n");
}

}  // namespace
}  // namespace bench
