// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/loop/trainer.h"

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// The bits of everything in the checkpoint of `step`, both files.
Tensors OnCheckpointSaved(const fs::path& model_dir, std::int64_t step) {
  Tensors all;
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    for (auto& [name, values] : TensorsAt(model_dir, step, file)) all[file + ("/" + name)] = values;
  }
  return all;
}

std::string Rejection(const TrainConfig& config, int exit_code) {
  return tests::Rejection<Error>(
      exit_code, [&] { RunAlone(config); }, "not refused");
}

using Trainer = SmallRun;

TEST_F(Trainer, AResumedRunIsBitEqualToOneThatNeverStoppedOnEveryBackEnd) {
  for (const std::string& backend : BackendNames()) {
    if (!BackendProblem(backend).empty()) continue;
    SCOPED_TRACE(backend);
    const TemporaryDirectory straight;
    const TemporaryDirectory stopped;
    EXPECT_EQ(RunAlone(SmallConfig(straight.path()), 0, backend).step, 6);

    const TrainResult first = RunAlone(SmallConfig(stopped.path()), /*stop_after=*/2, backend);
    EXPECT_EQ(first.ending, Ending::kStopped);
    EXPECT_EQ(first.step, 2);
    const TrainResult second = RunAlone(SmallConfig(stopped.path()), 0, backend);
    EXPECT_EQ(second.ending, Ending::kCompleted);
    EXPECT_EQ(second.step, 6);
    EXPECT_EQ(OnCheckpointSaved(stopped.path(), 6), OnCheckpointSaved(straight.path(), 6));
    EXPECT_NE(OnCheckpointSaved(stopped.path(), 2), OnCheckpointSaved(straight.path(), 6));
  }
}

TEST_F(Trainer, AResumedRunOfTwoRanksIsBitEqualToo) {
  const TemporaryDirectory straight;
  const TemporaryDirectory stopped;
  const auto run = [](const fs::path& directory, int stopping_rank) {
    RunRanks(2, [&](Communicator& communicator) {
      std::ostringstream log_text;
      // One rank alone is asked to stop; both must.
      const int stop_after = communicator.rank() == stopping_rank ? 3 : 0;
      const TrainResult result =
          RunRank(SmallConfig(directory), communicator, log_text, stop_after);
      EXPECT_EQ(result.step, stopping_rank < 0 ? 6 : 3);
    });
  };
  run(straight.path(), -1);
  run(stopped.path(), 1);
  run(stopped.path(), -1);
  EXPECT_EQ(OnCheckpointSaved(stopped.path(), 6), OnCheckpointSaved(straight.path(), 6));
}

// Batch norm is local to a rank, so it has to be frozen.  What is left is the order of sums: over 4
// samples twice and then over 2 ranks, against over 8 samples.
TEST_F(Trainer, TwoRanksLearnWhatOneLearnsWithTwiceTheBatch) {
  const TemporaryDirectory one;
  const TemporaryDirectory two;
  TrainConfig config = SmallConfig(one.path());
  config.freeze_batch_norm = true;
  config.batch_size = 8;
  config.schedule.lr_init = 0.5;
  RunAlone(config);

  config.model_dir = two.path();
  config.batch_size = 4;
  RunTogether(2, config);
  ExpectNearlyEqual(TensorsAt(two.path(), 6), TensorsAt(one.path(), 6));
}

// What each rank knows of itself alone, its weights, shows in the evaluation: steps with a learning
// rate of 0 leave them as they started.
TEST_F(Trainer, AllRanksStartFromTheWeightsOfRankZero) {
  const auto evaluated = [](std::uint64_t seed_of_rank_1) {
    const TemporaryDirectory directory;
    double loss = 0;
    RunRanks(2, [&](Communicator& communicator) {
      TrainConfig config = SmallConfig(directory.path());
      config.mode = RunMode::kTrainAndEvaluate;
      config.schedule.lr_init = 0;
      config.schedule.num_iter = 1;
      config.freeze_batch_norm = true;
      if (communicator.rank() == 1) config.seed = seed_of_rank_1;
      std::ostringstream log_text;
      const TrainResult result = RunRank(config, communicator, log_text);
      if (communicator.rank() == 0) loss = result.evaluation->loss;
    });
    return loss;
  };
  EXPECT_EQ(evaluated(99), evaluated(1));
}

// In a world of two a collective call of this one rank would never end.
TEST_F(Trainer, RanksCompareHowWeightsLieBeforeAnythingElse) {
  ThreadWorld world(2);
  ThreadCommunicator communicator(world, 1);
  const auto backend = MakeBackend("reference", {});
  GeneratedSource source({});
  std::vector<ConsistencyItem> logged;
  const TrainerDeps deps{.backend = *backend,
                         .communicator = communicator,
                         .training = &source,
                         .outputs = {},
                         .agree = [&](const std::vector<ConsistencyItem>& items) {
                           logged = items;
                           throw Error(EX_CONFIG, "unlike the others");
                         }};
  const TemporaryDirectory directory;
  EXPECT_THROW(RunTrainer(SmallConfig(directory.path()), deps), Error);
  ASSERT_FALSE(logged.empty());
  EXPECT_EQ(logged.front().name, "conv1.weight");
}

TEST_F(Trainer, LearnsAndEvaluates) {
  config_.mode = RunMode::kTrainAndEvaluate;
  config_.batch_size = 8;
  config_.schedule.num_iter = 60;
  config_.schedule.lr_init = 2;
  const TrainResult result = RunAlone(config_);
  ASSERT_TRUE(result.evaluation.has_value());
  EXPECT_EQ(result.evaluation->images, 64);
  EXPECT_GE(result.evaluation->top1, 0.9) << result.evaluation->loss;  // chance is 0.25
  EXPECT_EQ(result.evaluation->top5, 1);                               // of four classes
}

TEST_F(Trainer, EvaluatesWhatWasSaved) {
  config_.mode = RunMode::kTrainAndEvaluate;
  const TrainResult trained = RunAlone(config_);
  config_.mode = RunMode::kEvaluate;
  const TrainResult evaluated = RunAlone(config_);
  EXPECT_EQ(evaluated.step, 6);
  EXPECT_EQ(evaluated.evaluation->loss, trained.evaluation->loss);
  EXPECT_EQ(evaluated.evaluation->top1, trained.evaluation->top1);
}

TEST_F(Trainer, EvaluatesTheFileThatIsGivenRatherThanTheRun) {
  const TemporaryDirectory directory;
  const TemporaryDirectory other;
  TrainConfig config = SmallConfig(directory.path());
  config.mode = RunMode::kTrainAndEvaluate;
  const TrainResult trained = RunAlone(config);
  TrainConfig second = SmallConfig(other.path());
  second.seed = config.seed + 1;
  RunAlone(second);
  second.mode = RunMode::kEvaluate;
  second.init_from = CheckpointDirectory(directory.path(), 6) / "model.safetensors";
  EXPECT_EQ(RunAlone(second).evaluation->loss, trained.evaluation->loss);
}

TEST_F(Trainer, RejectsToEvaluateNothing) {
  config_.mode = RunMode::kEvaluate;
  EXPECT_THAT(Rejection(config_, EX_USAGE), HasSubstr("--init_from"));
}

TEST_F(Trainer, ALaunchOfRunIterLeavesTheRestToTheNext) {
  const TemporaryDirectory directory;
  const TemporaryDirectory straight;
  TrainConfig config = SmallConfig(directory.path());
  config.schedule.run_iter = 4;
  EXPECT_EQ(RunAlone(config).step, 4);
  EXPECT_EQ(RunAlone(config).step, 6);
  RunAlone(SmallConfig(straight.path()));
  EXPECT_EQ(OnCheckpointSaved(directory.path(), 6), OnCheckpointSaved(straight.path(), 6));
}

TEST_F(Trainer, AFinishedRunIsNotTrainedFurther) {
  const TemporaryDirectory directory;
  RunAlone(SmallConfig(directory.path()));
  const auto before = fs::last_write_time(CheckpointDirectory(directory.path(), 6));
  const TrainResult again = RunAlone(SmallConfig(directory.path()));
  EXPECT_EQ(again.ending, Ending::kCompleted);
  EXPECT_EQ(again.step, 6);
  EXPECT_EQ(fs::last_write_time(CheckpointDirectory(directory.path(), 6)), before);
}

TEST_F(Trainer, CheckpointsEveryNStepsAndKeepsTheNewest) {
  config_.checkpoint_every = 2;
  config_.keep_checkpoints = 2;
  RunAlone(config_);
  EXPECT_FALSE(fs::exists(CheckpointDirectory(directory_.path(), 2)));
  EXPECT_TRUE(fs::exists(CheckpointDirectory(directory_.path(), 4)));
  EXPECT_TRUE(fs::exists(CheckpointDirectory(directory_.path(), 6)));
}

TEST_F(Trainer, RejectsTheCheckpointOfAnotherNetwork) {
  const TemporaryDirectory directory;
  RunAlone(SmallConfig(directory.path()));
  TrainConfig config = SmallConfig(directory.path());
  config.classes = 3;
  EXPECT_THAT(Rejection(config, EX_DATAERR), HasSubstr("--classes=4"));
}

// Every tensor is as the other back end left it, and the next step starts from there.
TEST_F(Trainer, GoesOnFromTheBitsOfAnotherBackEndOnEveryBackEnd) {
  config_.schedule.run_iter = 3;
  RunAlone(config_, 0, "reference");
  const auto before = OnCheckpointSaved(directory_.path(), 3);
  for (const std::string& backend : BackendNames()) {
    if (!BackendProblem(backend).empty()) continue;
    SCOPED_TRACE(backend);
    const TemporaryDirectory copy;
    fs::copy(directory_.path(), copy.path(), fs::copy_options::recursive);
    config_ = SmallConfig(copy.path());
    config_.schedule.lr_init = 0;
    config_.momentum = 1;
    config_.weight_decay = 0;
    config_.freeze_batch_norm = true;
    EXPECT_EQ(RunAlone(config_, 0, backend).step, 6);
    auto after = OnCheckpointSaved(copy.path(), 6);
    for (const auto& [name, values] : before) {
      if (name.starts_with("model")) {
        EXPECT_EQ(after[name], values) << name;
      }
    }
  }
}

TEST_F(Trainer, StopsWhenTheLossIsNotFinite) {
  config_.schedule.lr_init = 1e30;
  config_.schedule.num_iter = 50;
  EXPECT_THAT(Rejection(config_, EX_SOFTWARE), HasSubstr("diverged"));
  EXPECT_FALSE(fs::exists(CheckpointDirectory(directory_.path(), 50)));
}

TEST_F(Trainer, NeverWritesWeightsThatAreNotNumbers) {
  config_.schedule.lr_init = 1e40;  // the loss of the one step is still that of good weights
  config_.weight_decay = 1000;
  config_.schedule.num_iter = 1;
  config_.export_dir = directory_.path();
  EXPECT_THAT(Rejection(config_, EX_SOFTWARE),
              AllOf(HasSubstr("the weights are not written: "), HasSubstr("diverged")));
  EXPECT_FALSE(fs::exists(CheckpointDirectory(directory_.path(), 1)));
  EXPECT_FALSE(fs::exists(ExportFile(config_)));
}

TEST_F(Trainer, RejectsToReportAnEvaluationWithoutALoss) {
  config_.mode = RunMode::kTrainAndEvaluate;
  config_.schedule.lr_init = 1e30;
  config_.schedule.num_iter = 1;
  EXPECT_THAT(Rejection(config_, EX_SOFTWARE),
              AllOf(HasSubstr("the loss of the evaluation is"), HasSubstr("--lr_init")));
}

TEST_F(Trainer, DumpsTheStateOfAStep) {
  config_.dump_state = directory_.path() / "state.safetensors";
  config_.dump_state_step = 1;
  config_.weight_decay = 0;
  RunAlone(config_);
  const auto state = TensorsOf(config_.dump_state);
  EXPECT_TRUE(state.contains("statistic.layer2.0.bn1.running_mean"));
  EXPECT_TRUE(state.contains("weight.conv1.weight"));
  // After one step without decay, momentum is the gradient.
  EXPECT_EQ(state.at("momentum.fc.weight"), state.at("gradient.fc.weight"));
  EXPECT_THAT(state.at("gradient.fc.weight"), Contains(testing::Ne(0.0F)));
}

TEST_F(Trainer, SaysWhenTheStepOfADumpIsNotInTheLaunch) {
  config_.dump_state = directory_.path() / "state.safetensors";
  config_.dump_state_step = 7;
  EXPECT_THAT(RunTogether(1, config_).log, HasSubstr("step 7 is not among the steps 1 to 6"));
  EXPECT_FALSE(fs::exists(config_.dump_state));
}

TEST_F(Trainer, ExportsWeightsFromWhichARunCanStart) {
  const TemporaryDirectory directory;
  const TemporaryDirectory next;
  TrainConfig config = SmallConfig(directory.path());
  config.export_dir = directory.path();
  RunAlone(config);
  const auto weights = TensorsOf(ExportFile(config));
  EXPECT_EQ(weights, TensorsAt(directory.path(), 6));

  TrainConfig start = SmallConfig(next.path());
  start.init_from = ExportFile(config);
  start.schedule.run_iter = 0;
  RunAlone(start);
  EXPECT_EQ(TensorsAt(next.path(), 0), weights);
}

TEST_F(Trainer, BenchmarksMeasureAndWriteNothing) {
  config_.warmup_steps = 2;
  for (const RunMode mode : {RunMode::kTrainingBenchmark, RunMode::kInferenceBenchmark}) {
    config_.mode = mode;
    EXPECT_GT(RunAlone(config_).images_per_second, 0);
  }
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

// In warm-up and afterwards.
TEST_F(Trainer, StopsABenchmarkWhenAskedTo) {
  config_.warmup_steps = 2;
  for (const RunMode mode : {RunMode::kTrainingBenchmark, RunMode::kInferenceBenchmark}) {
    config_.mode = mode;
    for (const int stop_after : {1, 4}) {
      const TrainResult result = RunAlone(config_, stop_after);
      EXPECT_EQ(result.ending, Ending::kStopped);
      EXPECT_EQ(result.images_per_second, 0);
    }
  }
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(Trainer, StopsABenchmarkOnAllRanksWhenOneIsAskedTo) {
  config_.warmup_steps = 2;
  for (const RunMode mode : {RunMode::kTrainingBenchmark, RunMode::kInferenceBenchmark}) {
    config_.mode = mode;
    RunRanks(2, [&](Communicator& communicator) {
      std::ostringstream log_text;
      const int stop_after = communicator.rank() == 1 ? 4 : 0;
      EXPECT_EQ(RunRank(config_, communicator, log_text, stop_after).ending, Ending::kStopped);
    });
  }
}

TEST_F(Trainer, RejectsABenchmarkThatIsAllWarmUp) {
  config_.mode = RunMode::kTrainingBenchmark;
  config_.warmup_steps = 6;
  EXPECT_THAT(Rejection(config_, EX_USAGE), HasSubstr("--warmup_steps"));
}

}  // namespace
}  // namespace trainer
