// SPDX-License-Identifier: Apache-2.0

#include <dlfcn.h>

#include "tests/support/directories.h"
#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/backend/measured_backend.h"
#include "trainer/core/error.h"
#include "trainer/train/logging/step_profile.h"

namespace trainer {
namespace {

// Trainings of two ranks of one node, six steps each.
class VariabilityLogTest : public testing::Test {
 protected:
  void Train() {
    RunRanks(2, [&](Communicator& communicator) {
      const auto backend = MakeBackend("reference", {});
      OpRecorder recorder([&] { return backend->MakeEvent(); });
      const auto measured = MakeMeasuredBackend(*backend, recorder);
      GeneratedSourceOptions options;
      options.batch = config_.batch_size;
      options.classes = config_.classes;
      options.rank = communicator.rank();
      options.ranks = communicator.size();
      GeneratedSource training(options);
      std::ostringstream log_text;
      TrainerDeps deps{
          *measured, communicator, &training, nullptr, {MakeLogger(log_text, 0, "info")}};
      VariabilityLogDeps variability;
      variability.recorder = &recorder;
      variability.device = "CPU cores";
      variability.local_rank = communicator.rank();
      variability.host = "c1-7";
      variability.read_state = [] {
        DeviceState state{.celsius = 61};
        return state;
      };
      deps.variability = &variability;
      RunTrainer(config_, deps);
    });
  }
  // By name; that of a CSV file has the number of the process, which both ranks share here.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(config_.variability_dir)) {
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      files[entry.path().filename().string()] = text.str();
    }
    return files;
  }
  TrainConfig MakeConfig() const {
    TrainConfig config = SmallConfig(directory_.path() / "run");
    config.mode = RunMode::kTrainingBenchmark;
    config.warmup_steps = 0;
    config.variability_dir = directory_.path() / "study";
    fs::create_directories(config.variability_dir);
    return config;
  }

  TemporaryDirectory directory_;
  TrainConfig config_ = MakeConfig();
};

TEST_F(VariabilityLogTest, HasEachIterationOfEachRankAndTheTrainingTimeAtTheEnd) {
  Train();
  const auto files = Files();
  ASSERT_EQ(files.size(), 2) << "one of durations, one of ops";
  const auto& [name, text] = *files.rbegin();
  EXPECT_THAT(name, MatchesRegex("resnet_iterdur_[0-9]+_c1-7.txt"));
  std::map<std::string, std::vector<std::string>> iterations;  // by device
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    last = line;
    // As the study's readers split it.
    std::istringstream words(line);
    std::string first, second, number, device, colon, seconds;
    if (words >> first >> second >> number >> device >> colon >> seconds && first == "Iteration") {
      iterations[device].push_back(number);
      EXPECT_EQ(colon, ":");
      EXPECT_GT(std::stod(seconds), 0);
    }
  }
  const std::vector<std::string> six = {"0", "1", "2", "3", "4", "5"};
  EXPECT_EQ(iterations, (std::map<std::string, std::vector<std::string>>{{"0", six}, {"1", six}}));
  EXPECT_THAT(last, MatchesRegex("Training time: 0:[0-9]+:[0-9]+[.][0-9]+"));
  EXPECT_THAT(text, HasSubstr("rank = 1, world_size = 2, device_ids = 1\n"));
}

TEST_F(VariabilityLogTest, HasEveryOpOfEveryStepAndTheStateOfTheDevice) {
  Train();
  const auto files = Files();
  const auto& [name, text] = *files.begin();
  EXPECT_THAT(name, MatchesRegex("resnet_[0-9]+_[0-9]+_c1-7.csv"));
  std::map<std::string, int> rows;  // by device
  int states = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    for (const char* device : {"\"CPU cores (0)\"", "\"CPU cores (1)\""}) {
      if (line.find(device) == std::string::npos) continue;
      line.find("\"61\",\"[Temperature (C)]\"") != std::string::npos ? ++states : ++rows[device];
    }
  }
  // resnet_tiny has 88 ops in a step.
  EXPECT_EQ(rows["\"CPU cores (0)\""], 6 * 88);
  EXPECT_EQ(rows["\"CPU cores (1)\""], 6 * 88);
  EXPECT_GE(states, 2);
  EXPECT_THAT(text, HasSubstr("\"convolution backward filter (layer1.0.conv2)\""));
}

// By a CUPTI that stands in for a GPU's.
TEST_F(VariabilityLogTest, HasTheKernelsOfAGpuAndSaysWhatIsLost) {
  const std::string library = tests::BuildDirectory() + "/tests/libfake_cupti.so";
  KernelTrace kernels({library});
  ASSERT_EQ(kernels.problem(), "");
  void* const cupti = ::dlopen(library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(cupti, nullptr);
  const auto run_kernel = reinterpret_cast<void (*)(const char*, std::uint64_t, std::uint64_t)>(
      ::dlsym(cupti, "RunKernel"));
  const auto lose_kernels = reinterpret_cast<void (*)(std::size_t)>(::dlsym(cupti, "LoseKernels"));
  OneRank communicator;
  const auto backend = MakeBackend("reference", {});
  const Network network(*backend, {"resnet_tiny", 1, 32, 32, 4, 0});
  VariabilityLogDeps deps{.kernels = &kernels, .device = "NVIDIA H200", .host = "c1-7"};
  deps.read_state = [] { return DeviceState(); };
  std::ostringstream log_text;
  VariabilityLog log(config_, communicator, &deps, network, MakeLogger(log_text, 0, "info"));
  log.Start(0, 1);
  for (int i = 0; i < 4; ++i) run_kernel("update", 1'000'000, 2'500);
  log.After({});
  const auto rows = [this] {
    const std::string text = Files().begin()->second;
    const std::string row =
        R"row(0.001000,0.002500,,,,,,,,,,,,,,"NVIDIA H200 (0)","1","1",,"update",)row";
    int count = 0;
    for (std::size_t at = text.find(row); at != std::string::npos; at = text.find(row, at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(rows(), 3) << "the others are still CUPTI's";
  lose_kernels(2);
  log.End();
  EXPECT_EQ(rows(), 4);
  EXPECT_THAT(log_text.str(), HasSubstr("2 kernels are lost: CUPTI had no memory for them"));
  ::dlclose(cupti);
}

TEST_F(VariabilityLogTest, SaysWhyRowsOfAGpuAreOps) {
  OneRank communicator;
  const auto backend = MakeBackend("reference", {});
  OpRecorder recorder([&] { return backend->MakeEvent(); });
  const Network network(*backend, {"resnet_tiny", 1, 32, 32, 4, 0});
  VariabilityLogDeps deps{.recorder = &recorder, .why_ops = "CUPTI is not here"};
  deps.read_state = [] { return DeviceState(); };
  std::ostringstream log_text;
  VariabilityLog log(config_, communicator, &deps, network, MakeLogger(log_text, 0, "info"));
  log.Start(0, 1);
  EXPECT_THAT(log_text.str(), HasSubstr("rows are ops, not kernels: CUPTI is not here"));
}

TEST_F(VariabilityLogTest, ADirectoryThatCannotBeWrittenIsRejected) {
  config_.variability_dir = directory_.path() / "nowhere";
  OneRank communicator;
  const auto backend = MakeBackend("reference", {});
  OpRecorder recorder([&] { return backend->MakeEvent(); });
  const Network network(*backend, {"resnet_tiny", 1, 32, 32, 4, 0});
  VariabilityLogDeps deps{.recorder = &recorder};
  deps.read_state = [] { return DeviceState(); };
  std::ostringstream log_text;
  VariabilityLog log(config_, communicator, &deps, network, MakeLogger(log_text, 0, "info"));
  EXPECT_THAT(tests::Rejection<Error>(EX_OSERR, [&] { log.Start(0, 1); }),
              HasSubstr("No such file or directory; check it, or give another "
                        "--variability_dir"));
}

}  // namespace
}  // namespace trainer
