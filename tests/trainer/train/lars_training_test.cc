// SPDX-License-Identifier: Apache-2.0
//
// Runs with LARS, and what they leave behind.

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

TrainConfig LarsConfig(const fs::path& model_dir) {
  TrainConfig config = SmallConfig(model_dir);
  config.optimizer = OptimizerKind::kLars;
  config.schedule.lr_schedule = RateDecay::kPolynomial;
  config.schedule.lr_scaling = RateScaling::kNone;
  config.schedule.lr_init = 10;
  return config;
}

// Weights, momentum and statistics.
std::map<std::string, std::vector<float>> SavedAt(const fs::path& model_dir, std::int64_t step) {
  std::map<std::string, std::vector<float>> all = TensorsAt(model_dir, step, kModelFile);
  for (auto& [name, values] : TensorsAt(model_dir, step, kOptimizerFile)) {
    all["optimizer/" + name] = values;
  }
  return all;
}

TEST(LarsTraining, AResumedRunIsBitEqualToOneThatNeverStoppedOnEveryBackEnd) {
  for (const std::string& backend : BackendNames()) {
    if (!BackendProblem(backend).empty()) continue;
    SCOPED_TRACE(backend);
    const TemporaryDirectory straight;
    const TemporaryDirectory stopped;
    EXPECT_EQ(RunAlone(LarsConfig(straight.path()), 0, backend).step, 6);
    EXPECT_EQ(RunAlone(LarsConfig(stopped.path()), /*stop_after=*/2, backend).step, 2);
    EXPECT_EQ(RunAlone(LarsConfig(stopped.path()), 0, backend).step, 6);
    EXPECT_EQ(SavedAt(stopped.path(), 6), SavedAt(straight.path(), 6));
    EXPECT_NE(SavedAt(stopped.path(), 2), SavedAt(straight.path(), 6));
  }
}

TEST(LarsTraining, AResumedRunOfTwoRanksIsBitEqualToo) {
  const TemporaryDirectory straight;
  const TemporaryDirectory stopped;
  const auto run = [](const fs::path& directory, int stop_after) {
    RunRanks(2, [&](Communicator& communicator) {
      TrainConfig config = LarsConfig(directory);
      config.paranoid = 1;
      std::ostringstream log_text;
      RunRank(config, communicator, log_text, stop_after);
    });
  };
  run(straight.path(), 0);
  run(stopped.path(), 3);
  run(stopped.path(), 0);
  EXPECT_EQ(SavedAt(stopped.path(), 6), SavedAt(straight.path(), 6));
}

std::string RejectionOf(const TrainConfig& config) {
  return tests::Rejection<Error>(
      EX_CONFIG, [&] { RunAlone(config); }, "not refused");
}

TEST(LarsTraining, MomentumOfAnotherOptimizerIsRejectedByName) {
  const TemporaryDirectory directory;
  RunAlone(LarsConfig(directory.path()), /*stop_after=*/2);
  const std::string checkpoint = CheckpointDirectory(directory.path(), 2).string();
  EXPECT_THAT(RejectionOf(SmallConfig(directory.path())),
              AllOf(HasSubstr(checkpoint + " is of a training with --optimizer=lars"),
                    HasSubstr("means nothing to --optimizer=sgd: continue with --optimizer=lars"),
                    HasSubstr("--init_from=" + checkpoint + "/model.safetensors")));
  // As it says.
  const TemporaryDirectory anew;
  TrainConfig config = SmallConfig(anew.path());
  config.init_from = checkpoint + "/model.safetensors";
  EXPECT_EQ(RunAlone(config).step, 6);
  EXPECT_THAT(RejectionOf(LarsConfig(anew.path())),
              HasSubstr(" is of a training with --optimizer=sgd, whose momentum"));
  // Its weights are weights.
  config = SmallConfig(directory.path());
  config.mode = RunMode::kEvaluate;
  EXPECT_EQ(RunAlone(config).ending, Ending::kCompleted);
}

}  // namespace
}  // namespace trainer
