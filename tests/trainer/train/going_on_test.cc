// SPDX-License-Identifier: Apache-2.0
//
// A run that goes on in a folder that is not as it left it, or as other options made it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/trainer/train/training_run.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/core/error.h"
#include "trainer/train/snapshot.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class GoingOn : public testing::Test {
 protected:
  // What the run says.
  std::string Run(const TrainConfig& config) {
    ThreadWorld world(1);
    ThreadCommunicator communicator(world, 0);
    std::ostringstream log_text;
    step_ = RunRank(config, communicator, log_text).step;
    return log_text.str();
  }

  std::string Refusal(const TrainConfig& config) {
    try {
      Run(config);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), EX_CONFIG);
      return error.what();
    }
    return "not refused";
  }

  std::vector<std::string> Listing() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path() / "checkpoints")) {
      names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  TemporaryFolder folder_;
  TrainConfig config_ = SmallConfig(folder_.path());
  std::int64_t step_ = 0;
};

TEST_F(GoingOn, IsRefusedToAFreshRunInAUsedFolder) {
  Run(config_);
  config_.resume = false;
  config_.schedule.num_iter = 2;
  EXPECT_THAT(Refusal(config_),
              AllOf(HasSubstr("checkpoints holds 1 checkpoint up to step 6 of another run"),
                    HasSubstr("give another --model_dir, leave --resume=never out"),
                    HasSubstr("mv " + (folder_.path() / "checkpoints").string())));
  EXPECT_THAT(Listing(), testing::ElementsAre("step-0000000006"));
}

TEST_F(GoingOn, AFreshRunStartsInANewFolder) {
  config_.resume = false;
  Run(config_);
  EXPECT_EQ(step_, 6);
}

TEST_F(GoingOn, IsRefusedWhereTheRunEndsBeforeTheCheckpoint) {
  Run(config_);
  config_.schedule.num_iter = 5;
  config_.export_file = folder_.path() / "exported";
  EXPECT_THAT(Refusal(config_), AllOf(HasSubstr("step-0000000006 is after the end of this run, "
                                                "which is step 5"),
                                      HasSubstr("larger --num_iter")));
  EXPECT_FALSE(fs::exists(config_.export_file));
  config_.mode = RunMode::kEvaluate;
  EXPECT_THAT(Run(config_), HasSubstr("weights of step 6"));
}

TEST_F(GoingOn, SaysWhatHasChanged) {
  config_.settings = {{"--lr_init", "0.1"}, {"--image_size", "32"}, {"data", "8 images"}};
  config_.schedule.run_iter = 2;
  EXPECT_THAT(Run(config_), Not(HasSubstr("changed since")));
  EXPECT_THAT(Run(config_), Not(HasSubstr("changed since")));
  config_.settings["--lr_init"] = "0.2";
  config_.settings["data"] = "9 images";
  config_.settings["--unheard_of"] = "by the version that wrote the checkpoint";
  config_.seed = 7;
  EXPECT_THAT(Run(config_), HasSubstr("changed since step 4: --seed 1 (now 7), --lr_init 0.1 (now "
                                      "0.2), data 8 images (now 9 images)\n"));
  EXPECT_EQ(step_, 6);
}

TEST_F(GoingOn, SaysThatTheNumberOfRanksHasChanged) {
  config_.schedule.run_iter = 3;
  Run(config_);
  config_.batch = 2;
  RunRanks(2, [&](Communicator& communicator) {
    std::ostringstream log_text;
    RunRank(config_, communicator, log_text);
    if (communicator.rank() == 0) {
      EXPECT_THAT(log_text.str(), HasSubstr("changed since step 3: ranks 1 (now 2)\n"));
    }
  });
}

TEST_F(GoingOn, SetsAsideWhatItHasPassedOver) {
  config_.checkpoint_every = 2;
  config_.schedule.run_iter = 4;
  Run(config_);
  const fs::path newest = CheckpointFolder(folder_.path(), 4);
  fs::remove_all(newest);
  std::ofstream(newest) << "a plain file";
  EXPECT_THAT(Run(config_), AllOf(HasSubstr("passed over"), HasSubstr("going on from step 2"),
                                  HasSubstr("it is now " + newest.string() + ".unusable")));
  EXPECT_EQ(step_, 6);
  EXPECT_THAT(Listing(), testing::ElementsAre("step-0000000002", "step-0000000004",
                                              "step-0000000004.unusable", "step-0000000006"));
}

TEST_F(GoingOn, AnEvaluationSetsNothingAside) {
  Run(config_);
  std::ofstream(CheckpointFolder(folder_.path(), 7)) << "a plain file";
  config_.mode = RunMode::kEvaluate;
  EXPECT_THAT(Run(config_), HasSubstr("passed over"));
  EXPECT_THAT(Listing(), testing::ElementsAre("step-0000000006", "step-0000000007"));
}

// The loss scale that a run of this precision takes over from a checkpoint of scale 1, of an fp32
// run.
double ScaleAfter(const TrainConfig& config, DType compute_type) {
  const auto backend = MakeBackend("reference", {.threads = 1});
  Network network(*backend, {config.architecture, config.batch, config.height, config.width,
                             config.classes, 0});
  const auto stream = backend->MakeStream();
  ThreadWorld world(1);
  ThreadCommunicator communicator(world, 0);
  std::ostringstream log_text;
  const Logger log = MakeLogger(log_text, 0, "info");
  LossScale scale = LossScale::Dynamic(256);
  EXPECT_EQ(RestoreSnapshot({config, network, communicator, *stream, log, compute_type}, scale, 6),
            6);
  return scale.scale();
}

TEST_F(GoingOn, StartsTheLossScaleAfreshInAnotherPrecision) {
  Run(config_);
  const Manifest manifest = ReadManifest(CheckpointFolder(folder_.path(), 6));
  EXPECT_EQ(manifest.state.precision, "fp32");
  EXPECT_EQ(ScaleAfter(config_, DType::kFloat16), 256);
  EXPECT_EQ(ScaleAfter(config_, DType::kBFloat16), 256);
  EXPECT_EQ(ScaleAfter(config_, DType::kFloat32), 1);
}

// A checkpoint of step 6 with another scale, of a version that did not note the precision.
TEST_F(GoingOn, TakesOverALossScaleOfAnOlderVersionUnlessItIsThatOfFp32) {
  Run(config_);
  const fs::path path = CheckpointFolder(folder_.path(), 6) / "manifest.json";
  Manifest manifest = ReadManifest(path.parent_path());
  manifest.state.precision = "";
  std::ofstream(path) << ToJson(manifest);
  EXPECT_EQ(ScaleAfter(config_, DType::kFloat16), 256);
  manifest.state.loss_scale = 2048;
  std::ofstream(path) << ToJson(manifest);
  EXPECT_EQ(ScaleAfter(config_, DType::kFloat16), 2048);
}

}  // namespace
}  // namespace trainer
