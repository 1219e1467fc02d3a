// SPDX-License-Identifier: Apache-2.0
//
// A run that goes on in a directory that is not as it left it, or as other options made it.

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/checkpoint/sample_run.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/core/error.h"
#include "trainer/train/state/snapshot.h"

namespace trainer {
namespace {

class GoingOn : public SmallRun {
 protected:
  // What the run says.
  std::string Run(const TrainConfig& config) {
    OneRank communicator;
    std::ostringstream log_text;
    step_ = RunRank(config, communicator, log_text).step;
    return log_text.str();
  }

  std::string Rejection(const TrainConfig& config) {
    return tests::Rejection<Error>(
        EX_CONFIG, [&] { Run(config); }, "not refused");
  }

  std::int64_t step_ = 0;
};

TEST_F(GoingOn, IsRejectedToAFreshRunInAUsedDirectory) {
  Run(config_);
  config_.resume = false;
  config_.schedule.num_iter = 2;
  EXPECT_THAT(Rejection(config_),
              AllOf(HasSubstr("checkpoints holds 1 checkpoint up to step 6 of another run"),
                    HasSubstr("give another --model_dir, leave --resume=never out"),
                    HasSubstr("mv " + (directory_.path() / "checkpoints").string())));
  EXPECT_THAT(Listing(directory_.path()), ElementsAre("step-0000000006"));
}

TEST_F(GoingOn, AFreshRunStartsInANewDirectory) {
  config_.resume = false;
  Run(config_);
  EXPECT_EQ(step_, 6);
}

TEST_F(GoingOn, IsRejectedWhereTheRunEndsBeforeTheCheckpoint) {
  Run(config_);
  config_.schedule.num_iter = 5;
  config_.export_dir = directory_.path() / "exported";
  EXPECT_THAT(Rejection(config_), AllOf(HasSubstr("step-0000000006 is after the end of this run, "
                                                  "which is step 5"),
                                        HasSubstr("larger --num_iter")));
  EXPECT_FALSE(fs::exists(ExportFile(config_)));
  config_.mode = RunMode::kEvaluate;
  config_.export_dir = directory_.path();
  EXPECT_THAT(Run(config_), AllOf(HasSubstr("weights of step 6"), HasSubstr("weights written: ")));
  EXPECT_EQ(TensorsOf(ExportFile(config_)), TensorsAt(directory_.path(), 6, kModelFile));
}

TEST_F(GoingOn, SaysWhereWeightsAreEvaluatedOnImagesOfAnotherSize) {
  const std::string size = std::to_string(config_.image_size);
  config_.settings = {{"--image_size", "4096"}};
  config_.schedule.run_iter = 2;
  Run(config_);
  config_.settings = {{"--image_size", size}};
  RunMode mode = config_.mode;
  config_.mode = RunMode::kEvaluate;
  EXPECT_THAT(Run(config_), HasSubstr(", of a training with --image_size=4096 (now " + size + ")"));
  std::swap(mode, config_.mode);
  Run(config_);
  std::swap(mode, config_.mode);
  EXPECT_THAT(Run(config_), Not(HasSubstr("of a training with")));
}

TEST_F(GoingOn, SaysThatFirstWeightsAreNotRead) {
  config_.schedule.run_iter = 2;
  EXPECT_THAT(Run(config_), Not(HasSubstr("--init_from")));
  EXPECT_THAT(Run(config_), Not(HasSubstr("--init_from")));
  config_.init_from = directory_.path() / "none";
  EXPECT_THAT(Run(config_), HasSubstr("--init_from is not read: the run has a checkpoint"));
  EXPECT_EQ(step_, 6);
}

TEST_F(GoingOn, SaysWhereAndWhatHasChanged) {
  config_.settings = {{"--lr_init", "0.1"}, {"--image_size", "32"}};
  config_.schedule.run_iter = 2;
  EXPECT_THAT(Run(config_), Not(HasSubstr("changed since")));
  EXPECT_THAT(Run(config_), AllOf(HasSubstr("resumed from step 2, after 8 of the 64 images of "
                                            "epoch 1: " +
                                            directory_.path().string()),
                                  Not(HasSubstr("changed since"))));
  config_.settings["--lr_init"] = "0.2";
  config_.settings["--unheard_of"] = "by the version that wrote the checkpoint";
  config_.seed = 7;
  EXPECT_THAT(Run(config_),
              AllOf(HasSubstr("changed since step 4: --seed 1 (now 7); the order is another one"),
                    HasSubstr("changed since step 4: --lr_init 0.1 (now 0.2)\n")));
  EXPECT_EQ(step_, 6);
}

// Three ranks with batches of 2 go on where one with batches of 4 stopped, and one alone with 5.
TEST_F(GoingOn, OtherRanksWithAnotherBatchTakeTheImagesThatFollow) {
  config_.schedule.num_iter = 12;
  config_.schedule.run_iter = 7;
  Run(config_);
  config_.batch_size = 2;
  config_.schedule.run_iter = 4;
  RunRanks(3, [&](Communicator& communicator) {
    std::ostringstream log_text;
    EXPECT_EQ(RunRank(config_, communicator, log_text).step, 11);
    if (communicator.rank() != 0) {
      EXPECT_EQ(log_text.str(), "");
      return;
    }
    EXPECT_THAT(log_text.str(),
                AllOf(HasSubstr("resumed from step 7, after 28 of the 64 images of epoch 1: "),
                      HasSubstr("changed since step 7: ranks 1 (now 3); "),
                      HasSubstr("changed since step 7: images in a step 4 (now 6); ")));
  });
  config_.batch_size = 5;
  EXPECT_THAT(Run(config_),
              HasSubstr("resumed from step 11, after 52 of the 64 images of epoch 1: "));
  EXPECT_EQ(step_, 12);
  const CheckpointState state = ReadManifest(CheckpointDirectory(directory_.path(), 12)).state;
  EXPECT_EQ(state.epoch, 0);
  EXPECT_EQ(state.epoch_samples, 57);
  EXPECT_EQ(state.global_batch, 5);
}

TEST_F(GoingOn, MoreRanksOfTheSameGlobalBatchTakeTheSameSteps) {
  config_.schedule.run_iter = 3;
  Run(config_);
  config_.batch_size = 2;
  EXPECT_EQ(RunTogether(2, config_).result.step, 6);
}

// A source that knows where it was sent.
class SoughtSource final : public GeneratedSource {
 public:
  using GeneratedSource::GeneratedSource;
  void Seek(const Position& position) override {
    sought = position;
    GeneratedSource::Seek(position);
  }
  Position sought;
};

TEST_F(GoingOn, TheSourceIsSentToTheImageThatFollows) {
  config_.schedule.run_iter = 3;
  Run(config_);
  config_.batch_size = 5;
  const auto backend = MakeBackend("reference", {.threads = 1});
  OneRank communicator;
  SoughtSource source({.batch = 5});
  std::ostringstream log_text;
  RunTrainer(config_, {.backend = *backend,
                       .communicator = communicator,
                       .training = &source,
                       .outputs = {MakeLogger(log_text, 0, "info")}});
  EXPECT_EQ(source.sought, (Position{3, 12}));
}

// Of 64 images, batches of 4 fill an epoch, batches of 6 and 7 leave 4 and 1 for the next.
TEST_F(GoingOn, EpochsEndWithTheLastWholeStepOfTheBatchThatIsLeft) {
  config_.schedule.iter_unit = IterationUnit::kEpoch;
  config_.schedule.num_iter = 2;
  config_.schedule.run_iter = 1;
  Run(config_);
  EXPECT_EQ(step_, 16);
  config_.batch_size = 6;
  Run(config_);
  EXPECT_EQ(step_, 16 + 9);  // 64 of 120 images are done
  config_.batch_size = 7;
  EXPECT_THAT(Run(config_), HasSubstr("after 54 of the 64 images of epoch 2: "));
  EXPECT_EQ(step_, 16 + 9 + 1);  // 118 of 126
  Run(config_);
  EXPECT_EQ(step_, 16 + 9 + 1);
}

TEST_F(GoingOn, ARunThatHasEndedStaysEndedWithAnotherBatch) {
  config_.schedule.iter_unit = IterationUnit::kEpoch;
  config_.schedule.num_iter = 4;
  Run(config_);
  EXPECT_EQ(step_, 64);
  config_.batch_size = 5;  // 4 epochs of 12 steps are 16 images fewer
  Run(config_);
  EXPECT_EQ(step_, 64);
  config_.schedule.num_iter = 3;
  EXPECT_THAT(Rejection(config_), HasSubstr("is after the end of this run, which is step 49"));
}

// As after a change of the data: what the checkpoint calls 3 epochs and 40 images.
TEST_F(GoingOn, InASetOfAnotherSizeItIsAsManyEpochsFurther) {
  config_.schedule.num_iter = 100;
  config_.schedule.run_iter = 58;
  Run(config_);
  const fs::path path = CheckpointDirectory(directory_.path(), 58) / "manifest.json";
  Manifest manifest = ReadManifest(path.parent_path());
  EXPECT_EQ(manifest.state.epoch, 3);
  EXPECT_EQ(manifest.state.epoch_samples, 40);
  config_.schedule.run_iter = 0;
  manifest.state.epoch_samples = 70;  // of a set that had more images than the 64 of this one
  std::ofstream(path) << ToJson(manifest);
  EXPECT_THAT(Run(config_), HasSubstr("after 0 of the 64 images of epoch 5: "));
}

TEST_F(GoingOn, SetsAsideWhatItHasPassedOver) {
  config_.checkpoint_every = 2;
  config_.schedule.run_iter = 4;
  Run(config_);
  const fs::path newest = CheckpointDirectory(directory_.path(), 4);
  fs::remove_all(newest);
  std::ofstream(newest) << "a plain file";
  EXPECT_THAT(Run(config_), AllOf(HasSubstr("passed over"), HasSubstr("resumed from step 2"),
                                  HasSubstr("it is now " + newest.string() + ".unusable")));
  EXPECT_EQ(step_, 6);
  EXPECT_THAT(Listing(directory_.path()),
              ElementsAre("step-0000000002", "step-0000000004", "step-0000000004.unusable",
                          "step-0000000006"));
}

TEST_F(GoingOn, FromAnOlderCheckpointSetsNewerOnesAside) {
  config_.checkpoint_every = 2;
  Run(config_);
  const Tensors end = TensorsAt(directory_.path(), 6);
  config_.resume_from = 2;
  EXPECT_THAT(Run(config_), AllOf(HasSubstr("resumed from step 2"),
                                  HasSubstr("step-0000000006 is set aside: it is now "),
                                  HasSubstr("step-0000000004 is set aside: it is now ")));
  EXPECT_EQ(TensorsAt(directory_.path(), 6), end);
  EXPECT_THAT(Listing(directory_.path()),
              ElementsAre("step-0000000002", "step-0000000004", "step-0000000004.unusable",
                          "step-0000000006", "step-0000000006.unusable"));
  config_.resume_from = 6;
  EXPECT_THAT(Run(config_),
              AllOf(HasSubstr("training is complete: step 6 of 6"), Not(HasSubstr("set aside"))));
}

TEST_F(GoingOn, FromACheckpointThatIsNotThereNamesThoseThatAre) {
  const auto rejection = [this] {
    return tests::Rejection<Error>(
        EX_USAGE, [&] { Run(config_); }, "not refused");
  };
  config_.resume_from = 3;
  EXPECT_THAT(rejection(), HasSubstr("checkpoints has no checkpoint of step 3, nor of any other"));
  config_.checkpoint_every = 2;
  config_.resume_from = -1;
  Run(config_);
  config_.resume_from = 3;
  EXPECT_THAT(rejection(),
              HasSubstr("has no checkpoint of step 3; it has those of step 2, 4 and 6"));
  config_.checkpoint_every = 1;
  config_.keep_checkpoints = 100;
  config_.schedule.num_iter = 17;
  config_.resume_from = 6;
  Run(config_);
  config_.resume_from = 3;
  EXPECT_THAT(rejection(), HasSubstr("those of step ..., 8, 9, 10, 11, 12, 13, 14, 15, 16 and 17"));
}

TEST_F(GoingOn, FromADamagedCheckpointIsRejectedAndNothingIsSetAside) {
  config_.checkpoint_every = 2;
  Run(config_);
  fs::remove(CheckpointDirectory(directory_.path(), 4) / "model.safetensors");
  config_.resume_from = 4;
  EXPECT_THAT(tests::Rejection<Error>(
                  EX_DATAERR, [&] { Run(config_); }, "not refused"),
              HasSubstr("step-0000000004/model.safetensors"));
  EXPECT_THAT(Listing(directory_.path()),
              ElementsAre("step-0000000002", "step-0000000004", "step-0000000006"));
}

TEST_F(GoingOn, ACompleteTrainingSaysSo) {
  EXPECT_THAT(Run(config_), Not(HasSubstr("training is complete")));
  EXPECT_THAT(Run(config_),
              HasSubstr("training is complete: step 6 of 6; a larger --num_iter trains on"));
  config_.schedule.num_iter = 8;
  EXPECT_THAT(Run(config_), Not(HasSubstr("training is complete")));
}

TEST_F(GoingOn, AnEvaluationSetsNothingAside) {
  Run(config_);
  std::ofstream(CheckpointDirectory(directory_.path(), 7)) << "a plain file";
  config_.mode = RunMode::kEvaluate;
  EXPECT_THAT(Run(config_), HasSubstr("passed over"));
  EXPECT_THAT(Listing(directory_.path()), ElementsAre("step-0000000006", "step-0000000007"));
}

// The loss scale that a run of this precision takes over from a checkpoint of scale 1, of an fp32
// run.
double ScaleAfter(const TrainConfig& config, DType compute_type) {
  const auto backend = MakeBackend("reference", {.threads = 1});
  Network network(*backend, {config.arch, config.batch_size, config.image_size, config.image_size,
                             config.classes, 0});
  const auto stream = backend->MakeStream();
  OneRank communicator;
  std::ostringstream log_text;
  const Logger log = MakeLogger(log_text, 0, "info");
  LossScale scale = LossScale::Dynamic(256);
  const TrainingAhead ahead = {MakeSchedule(config.schedule, 64, {config.batch_size, 1}), 64};
  EXPECT_EQ(
      RestoreSnapshot({config, network, communicator, *stream, log, compute_type}, scale, ahead),
      (Position{6, 24}));
  return scale.scale();
}

TEST_F(GoingOn, StartsTheLossScaleAfreshInAnotherPrecision) {
  Run(config_);
  const Manifest manifest = ReadManifest(CheckpointDirectory(directory_.path(), 6));
  EXPECT_EQ(manifest.state.precision, "fp32");
  EXPECT_EQ(ScaleAfter(config_, DType::kFloat16), 256);
  EXPECT_EQ(ScaleAfter(config_, DType::kBFloat16), 256);
  EXPECT_EQ(ScaleAfter(config_, DType::kFloat32), 1);
}

// A checkpoint of step 6 with another scale, of a version that did not note the precision.
TEST_F(GoingOn, TakesOverALossScaleOfAnOlderVersionUnlessItIsThatOfFp32) {
  Run(config_);
  const fs::path path = CheckpointDirectory(directory_.path(), 6) / "manifest.json";
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
