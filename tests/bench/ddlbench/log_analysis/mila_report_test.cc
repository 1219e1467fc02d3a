// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/mila_report.h"

#include <nlohmann/json.hpp>

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

// The numbers of mila-iqia/training, profiles/fast.json.
TEST(MilaBenchmarkOf, HasMilasSettings) {
  EXPECT_EQ(MilaBenchmarkOf("convnet").batch_size, 64);
  EXPECT_FALSE(MilaBenchmarkOf("convnet").half);
  EXPECT_EQ(MilaBenchmarkOf("convnet").kind, MilaKind::kOne);
  EXPECT_EQ(MilaBenchmarkOf("convnet_fp16").batch_size, 128);
  EXPECT_TRUE(MilaBenchmarkOf("convnet_fp16").half);
  EXPECT_EQ(MilaBenchmarkOf("convnet_distributed").kind, MilaKind::kDistributed);
  EXPECT_EQ(MilaBenchmarkOf("convnet_distributed").batch_size, 64);
  EXPECT_TRUE(MilaBenchmarkOf("convnet_distributed_fp16").half);
  EXPECT_EQ(MilaBenchmarkOf("convnet_distributed_fp16").batch_size, 128);
  EXPECT_EQ(MilaBenchmarkOf("loader").kind, MilaKind::kLoader);
  EXPECT_EQ(MilaBenchmarkOf("loader").batch_size, 256);
}

TEST(MilaBenchmarkOf, TakesAnotherNameForConvnet) {
  EXPECT_EQ(MilaBenchmarkOf("mine").batch_size, 64);
  EXPECT_EQ(MilaBenchmarkOf("mine").kind, MilaKind::kOne);
  EXPECT_EQ(MilaBenchmarkOf("").kind, MilaKind::kOne);
}

MilaRun MakeRun() {
  MilaRun run;
  run.suite = "fast";
  run.name = "convnet";
  run.version = "0.1.0";
  run.arch = "resnet101";
  run.data = "synthetic";
  run.batch_size = 64;
  run.repeat = 15;
  run.number = 5;
  run.learning_rate = 0.1;
  run.cpu_cores = 2;
  run.vcd = "0";
  run.hostname = "laptop";
  run.start_time = 1'795'402'643;  // 2026-11-23 02:57:23
  run.end_time = 1'795'402'703;
  return run;
}

// Step i takes 0.1 + i / 1000 s.
std::vector<RunStep> MakeSteps(int count) {
  std::vector<RunStep> steps;
  for (int i = 0; i < count; ++i) {
    steps.push_back({i, 64 / (0.1 + i / 1000.0), 8.0 - i / 100.0});
  }
  return steps;
}

TEST(ObservationsOf, AreTheSecondsOfSeveralStepsEach) {
  const std::vector<double> observations = ObservationsOf(MakeSteps(7), 64, 2, 3);
  ASSERT_EQ(observations.size(), 2U);
  EXPECT_DOUBLE_EQ(observations[0], 0.100 + 0.101 + 0.102);
  EXPECT_DOUBLE_EQ(observations[1], 0.103 + 0.104 + 0.105);
  EXPECT_THROW(ObservationsOf(MakeSteps(5), 64, 2, 3), trainer::Error);
}

// From the raw times of the steps, by hand.
TEST(TimesOf, LeavesTheFirstTenObservationsOut) {
  const std::vector<double> observations = ObservationsOf(MakeSteps(75), 64, 15, 5);
  const MilaTimes times = TimesOf(observations, 64, 5);
  // Observation k (from 0) is 5 x 0.1 + (25 k + 10) / 1000; 10 to 14 count.
  EXPECT_EQ(times.train.count, 5U);
  EXPECT_NEAR(times.train.mean, 0.51 + 0.025 * 12, 1e-12);
  EXPECT_NEAR(times.train.min, 0.51 + 0.025 * 10, 1e-12);
  EXPECT_NEAR(times.train.max, 0.51 + 0.025 * 14, 1e-12);
  EXPECT_NEAR(times.train.sd, 0.025 * std::sqrt(2.0), 1e-12);  // of -2, -1, 0, 1, 2
  EXPECT_NEAR(times.items_avg, 320 / 0.81, 1e-9);
  EXPECT_NEAR(times.items_max, 320 / 0.76, 1e-9);
  EXPECT_NEAR(times.items_min, 320 / 0.86, 1e-9);
  EXPECT_THROW(TimesOf(std::vector<double>(10, 1.0), 64, 5), trainer::Error);
}

TEST(FormatEta, IsMilasLine) {
  EXPECT_EQ(FormatEta(0, 15, 2.25, 6.90776), "[  0/ 15] | ETA:   0.53 min | Batch Loss   6.9078");
  EXPECT_EQ(FormatEta(14, 15, 2.25, 0.5), "[ 14/ 15] | ETA:   0.00 min | Batch Loss   0.5000");
  EXPECT_EQ(FormatEta(999, 2000, 60, 1234.5),
            "[999/2000] | ETA: 1000.00 min | Batch Loss 1234.5000");
  EXPECT_EQ(FormatEta(2, 15, 30, std::nullopt), "[  2/ 15] | ETA:   6.00 min ");
}

TEST(FormatMilaReport, HasMilasFields) {
  const std::vector<RunStep> steps = MakeSteps(120);
  const MilaTimes times = TimesOf(ObservationsOf(steps, 64, 15, 5), 64, 5);
  const std::string text = FormatMilaReport(MakeRun(), times, steps);
  const nlohmann::json report = nlohmann::json::parse(text);
  std::vector<std::string> keys;
  for (const auto& [key, value] : report.items()) keys.push_back(key);
  EXPECT_THAT(keys, UnorderedElementsAre(
                        "arch", "batch_loss", "batch_size", "completed", "cpu_cores", "cuda",
                        "data", "devices", "end_time", "epoch_loss", "half", "hostname", "jr_id",
                        "lr", "metrics", "name", "number", "repeat", "run_id", "start_time",
                        "suite", "train", "train_item", "unique_id", "vcd", "version"));
  EXPECT_EQ(report["batch_loss"].size(), 100U);
  EXPECT_EQ(report["batch_loss"].back(), steps.back().cross_entropy);
  EXPECT_EQ(report["vcd"], "0");
  EXPECT_EQ(report["cuda"], false);
  EXPECT_EQ(report["start_time"], "Mon Nov 23 02:57:23 2026");
  EXPECT_EQ(report["end_time"], "Mon Nov 23 02:58:23 2026");
  EXPECT_EQ(report["train"]["avg"], times.train.mean);
  EXPECT_EQ(report["train"]["count"], 5);
  EXPECT_EQ(report["train"]["unit"], "s");
  EXPECT_EQ(report["train_item"]["avg"], times.items_avg);
  EXPECT_EQ(report["train_item"]["range"], times.items_max - times.items_min);
  EXPECT_EQ(report["train_item"]["unit"], "items/sec");
  // As Python's json.dumps(sort_keys=True, indent=4, separators=(',', ': ')).
  EXPECT_THAT(text, HasSubstr("{\n    \"arch\": \"resnet101\",\n    \"batch_loss\": [\n        "));
  EXPECT_THAT(text, HasSubstr("\"epoch_loss\": [],\n"));
}

TEST(FormatMilaReport, NamesTheGpuThatThereWas) {
  MilaRun run = MakeRun();
  run.gpu = "NVIDIA H200";
  const std::vector<RunStep> steps = MakeSteps(75);
  const nlohmann::json report = nlohmann::json::parse(
      FormatMilaReport(run, TimesOf(ObservationsOf(steps, 64, 15, 5), 64, 5), steps));
  EXPECT_EQ(report["gpu"], "NVIDIA H200");
  EXPECT_EQ(report["cuda"], true);
}

TEST(FormatMilaReport, OfTheInputAloneHasNoNetworkAndNoLosses) {
  MilaRun run = MakeRun();
  run.name = "loader";
  run.is_loader = true;
  const MilaTimes times = TimesOf(std::vector<double>(15, 2.0), 64, 5);
  const nlohmann::json report = nlohmann::json::parse(FormatMilaReport(run, times, {}));
  for (const char* key : {"arch", "half", "lr"}) EXPECT_FALSE(report.contains(key)) << key;
  EXPECT_EQ(report["batch_loss"], nlohmann::json::array());
  EXPECT_EQ(report["train_item"]["avg"], 160);
  EXPECT_EQ(report["name"], "loader");
}

// By Python's hashlib, of
// "archresnet101cpu_cores2devices1halfFalselr0.1number5repeat15version0.1.0".
TEST(UniqueIdOf, IsThatOfTheArguments) {
  MilaRun run = MakeRun();
  const std::string id = UniqueIdOf(run);
  EXPECT_EQ(id, "a0dcfd422cc3a7561b4a567691e05b0625073bd338d01ee5d293f89dd29fd9af");
  run.hostname = "elsewhere";
  run.run_id = 3;
  run.vcd = "1";
  run.batch_size = 128;
  EXPECT_EQ(UniqueIdOf(run), id);
  run.half = true;
  EXPECT_NE(UniqueIdOf(run), id);
  run.is_loader = true;
  const std::string of_loader = UniqueIdOf(run);
  run.half = false;
  EXPECT_EQ(UniqueIdOf(run), of_loader);
}

TEST(MilaFileStem, HasSuiteBenchmarkRunDevicesAndTime) {
  MilaRun run = MakeRun();
  EXPECT_EQ(MilaFileStem(run, 1'795'402'643'000'123), "fast.convnet.R0.D0.20261123-025723-000123");
  run.run_id = 7;
  run.vcd = "0,1";
  EXPECT_EQ(MilaFileStem(run, 1'795'402'643'999'999),
            "fast.convnet.R7.D0,1.20261123-025723-999999");
  run.completed = false;
  EXPECT_EQ(MilaFileStem(run, 1'795'402'643'999'999),
            "fast.convnet.R7.D0,1.FAIL.20261123-025723-999999");
}

TEST(ParseMilaReport, ReadsWhatWasWritten) {
  const std::vector<RunStep> steps = MakeSteps(75);
  const MilaTimes times = TimesOf(ObservationsOf(steps, 64, 15, 5), 64, 5);
  const MilaResult result = ParseMilaReport(FormatMilaReport(MakeRun(), times, steps));
  EXPECT_EQ(result.name, "convnet");
  EXPECT_EQ(result.items_per_second, times.items_avg);
}

TEST(ParseMilaReport, RejectsARunThatHasFailed) {
  const std::vector<RunStep> steps = MakeSteps(75);
  MilaRun run = MakeRun();
  run.completed = false;
  for (const auto& times :
       {std::optional<MilaTimes>(TimesOf(ObservationsOf(steps, 64, 15, 5), 64, 5)),
        std::optional<MilaTimes>()}) {
    EXPECT_EQ(tests::Rejection<trainer::Error>(
                  EX_DATAERR, [&] { ParseMilaReport(FormatMilaReport(run, times, steps)); }),
              "it is of a run that has failed");
  }
}

TEST(ParseMilaReport, RejectsWhatIsNone) {
  for (const std::string text :
       {"", "x", "[]", "{}", "{\"name\": 1, \"train_item\": {\"avg\": 1}}", "{\"name\": \"a\"}",
        "{\"name\": \"a\", \"train_item\": 3}", "{\"name\": \"a\", \"train_item\": {}}",
        "{\"name\": \"a\", \"train_item\": {\"avg\": \"1\"}}",
        "{\"name\": \"a\", \"train_item\": {\"avg\": 0}}",
        "{\"name\": \"a\", \"train_item\": {\"avg\": -1}}",
        "{\"name\": \"a\", \"train_item\": {\"avg\": 1}",
        "{\"name\": \"\xff\", \"train_item\": 1}"}) {
    EXPECT_THROW(ParseMilaReport(text), trainer::Error) << text;
  }
}

// The vectors of FIPS 180-4's examples.
TEST(Sha256, HasTheStandardsResults) {
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Lengths around those at which one block is no longer enough; by Python's hashlib.
TEST(Sha256, PadsEveryLength) {
  EXPECT_EQ(Sha256(std::string(55, 'x')),
            "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  EXPECT_EQ(Sha256(std::string(56, 'x')),
            "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  EXPECT_EQ(Sha256(std::string(64, 'x')),
            "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
}

}  // namespace
}  // namespace bench
