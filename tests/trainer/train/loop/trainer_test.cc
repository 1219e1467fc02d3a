// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/loop/trainer.h"

#include "tests/support/test.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

// The bits of everything in the checkpoint of `step`, both files.
std::map<std::string, std::vector<float>> OnCheckpointSaved(const std::filesystem::path& model_dir,
                                                            std::int64_t step) {
  std::map<std::string, std::vector<float>> all;
  const std::filesystem::path directory = CheckpointDirectory(model_dir, step);
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    for (auto& [name, values] : TensorsOf(directory / file)) all[file + ("/" + name)] = values;
  }
  return all;
}

std::string Rejection(const TrainConfig& config, int exit_code) {
  try {
    RunAlone(config);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), exit_code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "not refused";
  return "";
}

TEST(Trainer, AResumedRunIsBitEqualToOneThatNeverStoppedOnEveryBackEnd) {
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

TEST(Trainer, AResumedRunOfTwoRanksIsBitEqualToo) {
  const TemporaryDirectory straight;
  const TemporaryDirectory stopped;
  const auto run = [](const std::filesystem::path& directory, int stopping_rank) {
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
TEST(Trainer, TwoRanksLearnWhatOneLearnsWithTwiceTheBatch) {
  const TemporaryDirectory one;
  const TemporaryDirectory two;
  TrainConfig config = SmallConfig(one.path());
  config.freeze_batch_norm = true;
  config.batch_size = 8;
  config.schedule.lr_init = 0.5;
  RunAlone(config);

  config.model_dir = two.path();
  config.batch_size = 4;
  RunRanks(2, [&](Communicator& communicator) {
    std::ostringstream log_text;
    RunRank(config, communicator, log_text);
  });
  const auto model = TensorsOf(CheckpointDirectory(one.path(), 6) / "model.safetensors");
  const auto other = TensorsOf(CheckpointDirectory(two.path(), 6) / "model.safetensors");
  ASSERT_EQ(model.size(), other.size());
  for (const auto& [name, values] : model) {
    double squares = 0;
    double difference = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      squares += std::pow(values[i], 2);
      difference += std::pow(values[i] - other.at(name)[i], 2);
    }
    EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(squares)) << name;
  }
}

// What each rank knows of itself alone, its weights, shows in the evaluation: steps with a learning
// rate of 0 leave them as they started.
TEST(Trainer, AllRanksStartFromTheWeightsOfRankZero) {
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
TEST(Trainer, RanksCompareHowWeightsLieBeforeAnythingElse) {
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

TEST(Trainer, LearnsAndEvaluates) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.mode = RunMode::kTrainAndEvaluate;
  config.batch_size = 8;
  config.schedule.num_iter = 60;
  config.schedule.lr_init = 2;
  const TrainResult result = RunAlone(config);
  ASSERT_TRUE(result.evaluation.has_value());
  EXPECT_EQ(result.evaluation->images, 64);
  EXPECT_GE(result.evaluation->top1, 0.9) << result.evaluation->loss;  // chance is 0.25
  EXPECT_EQ(result.evaluation->top5, 1);                               // of four classes
}

TEST(Trainer, EvaluatesWhatWasSaved) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.mode = RunMode::kTrainAndEvaluate;
  const TrainResult trained = RunAlone(config);
  config.mode = RunMode::kEvaluate;
  const TrainResult evaluated = RunAlone(config);
  EXPECT_EQ(evaluated.step, 6);
  EXPECT_EQ(evaluated.evaluation->loss, trained.evaluation->loss);
  EXPECT_EQ(evaluated.evaluation->top1, trained.evaluation->top1);
}

TEST(Trainer, EvaluatesTheFileThatIsGivenRatherThanTheRun) {
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

TEST(Trainer, RejectsToEvaluateNothing) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.mode = RunMode::kEvaluate;
  EXPECT_THAT(Rejection(config, EX_USAGE), HasSubstr("--init_from"));
}

TEST(Trainer, ALaunchOfRunIterLeavesTheRestToTheNext) {
  const TemporaryDirectory directory;
  const TemporaryDirectory straight;
  TrainConfig config = SmallConfig(directory.path());
  config.schedule.run_iter = 4;
  EXPECT_EQ(RunAlone(config).step, 4);
  EXPECT_EQ(RunAlone(config).step, 6);
  RunAlone(SmallConfig(straight.path()));
  EXPECT_EQ(OnCheckpointSaved(directory.path(), 6), OnCheckpointSaved(straight.path(), 6));
}

TEST(Trainer, AFinishedRunIsNotTrainedFurther) {
  const TemporaryDirectory directory;
  RunAlone(SmallConfig(directory.path()));
  const auto before = std::filesystem::last_write_time(CheckpointDirectory(directory.path(), 6));
  const TrainResult again = RunAlone(SmallConfig(directory.path()));
  EXPECT_EQ(again.ending, Ending::kCompleted);
  EXPECT_EQ(again.step, 6);
  EXPECT_EQ(std::filesystem::last_write_time(CheckpointDirectory(directory.path(), 6)), before);
}

TEST(Trainer, CheckpointsEveryNStepsAndKeepsTheNewest) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.checkpoint_every = 2;
  config.keep_checkpoints = 2;
  RunAlone(config);
  EXPECT_FALSE(std::filesystem::exists(CheckpointDirectory(directory.path(), 2)));
  EXPECT_TRUE(std::filesystem::exists(CheckpointDirectory(directory.path(), 4)));
  EXPECT_TRUE(std::filesystem::exists(CheckpointDirectory(directory.path(), 6)));
}

TEST(Trainer, RejectsTheCheckpointOfAnotherNetwork) {
  const TemporaryDirectory directory;
  RunAlone(SmallConfig(directory.path()));
  TrainConfig config = SmallConfig(directory.path());
  config.classes = 3;
  EXPECT_THAT(Rejection(config, EX_DATAERR), HasSubstr("--classes=4"));
}

// Every tensor is as the other back end left it, and the next step starts from there.
TEST(Trainer, GoesOnFromTheBitsOfAnotherBackEndOnEveryBackEnd) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.schedule.run_iter = 3;
  RunAlone(config, 0, "reference");
  const auto before = OnCheckpointSaved(directory.path(), 3);
  for (const std::string& backend : BackendNames()) {
    if (!BackendProblem(backend).empty()) continue;
    SCOPED_TRACE(backend);
    const TemporaryDirectory copy;
    std::filesystem::copy(directory.path(), copy.path(), std::filesystem::copy_options::recursive);
    config = SmallConfig(copy.path());
    config.schedule.lr_init = 0;
    config.momentum = 1;
    config.weight_decay = 0;
    config.freeze_batch_norm = true;
    EXPECT_EQ(RunAlone(config, 0, backend).step, 6);
    auto after = OnCheckpointSaved(copy.path(), 6);
    for (const auto& [name, values] : before) {
      if (name.starts_with("model")) {
        EXPECT_EQ(after[name], values) << name;
      }
    }
  }
}

TEST(Trainer, StopsWhenTheLossIsNotFinite) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.schedule.lr_init = 1e30;
  config.schedule.num_iter = 50;
  EXPECT_THAT(Rejection(config, EX_SOFTWARE), HasSubstr("diverged"));
  EXPECT_FALSE(std::filesystem::exists(CheckpointDirectory(directory.path(), 50)));
}

TEST(Trainer, NeverWritesWeightsThatAreNotNumbers) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.schedule.lr_init = 1e40;  // the loss of the one step is still that of good weights
  config.weight_decay = 1000;
  config.schedule.num_iter = 1;
  config.export_dir = directory.path();
  EXPECT_THAT(Rejection(config, EX_SOFTWARE),
              AllOf(HasSubstr("the weights are not written: "), HasSubstr("diverged")));
  EXPECT_FALSE(std::filesystem::exists(CheckpointDirectory(directory.path(), 1)));
  EXPECT_FALSE(std::filesystem::exists(ExportFile(config)));
}

TEST(Trainer, RejectsToReportAnEvaluationWithoutALoss) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.mode = RunMode::kTrainAndEvaluate;
  config.schedule.lr_init = 1e30;
  config.schedule.num_iter = 1;
  EXPECT_THAT(Rejection(config, EX_SOFTWARE),
              AllOf(HasSubstr("the loss of the evaluation is"), HasSubstr("--lr_init")));
}

TEST(Trainer, DumpsTheStateOfAStep) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.dump_state = directory.path() / "state.safetensors";
  config.dump_state_step = 1;
  config.weight_decay = 0;
  RunAlone(config);
  const auto state = TensorsOf(config.dump_state);
  EXPECT_TRUE(state.contains("statistic.layer2.0.bn1.running_mean"));
  EXPECT_TRUE(state.contains("weight.conv1.weight"));
  // After one step without decay, momentum is the gradient.
  EXPECT_EQ(state.at("momentum.fc.weight"), state.at("gradient.fc.weight"));
  EXPECT_THAT(state.at("gradient.fc.weight"), Contains(testing::Ne(0.0F)));
}

TEST(Trainer, SaysWhenTheStepOfADumpIsNotInTheLaunch) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.dump_state = directory.path() / "state.safetensors";
  config.dump_state_step = 7;
  ThreadWorld world(1);
  ThreadCommunicator alone(world, 0);
  std::ostringstream log_text;
  RunRank(config, alone, log_text);
  EXPECT_THAT(log_text.str(), HasSubstr("step 7 is not among the steps 1 to 6"));
  EXPECT_FALSE(std::filesystem::exists(config.dump_state));
}

TEST(Trainer, ExportsWeightsFromWhichARunCanStart) {
  const TemporaryDirectory directory;
  const TemporaryDirectory next;
  TrainConfig config = SmallConfig(directory.path());
  config.export_dir = directory.path();
  RunAlone(config);
  const auto weights = TensorsOf(ExportFile(config));
  EXPECT_EQ(weights, TensorsOf(CheckpointDirectory(directory.path(), 6) / "model.safetensors"));

  TrainConfig start = SmallConfig(next.path());
  start.init_from = ExportFile(config);
  start.schedule.run_iter = 0;
  RunAlone(start);
  EXPECT_EQ(TensorsOf(CheckpointDirectory(next.path(), 0) / "model.safetensors"), weights);
}

TEST(Trainer, BenchmarksMeasureAndWriteNothing) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.warmup_steps = 2;
  for (const RunMode mode : {RunMode::kTrainingBenchmark, RunMode::kInferenceBenchmark}) {
    config.mode = mode;
    EXPECT_GT(RunAlone(config).images_per_second, 0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

// In warm-up and afterwards.
TEST(Trainer, StopsABenchmarkWhenAskedTo) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.warmup_steps = 2;
  for (const RunMode mode : {RunMode::kTrainingBenchmark, RunMode::kInferenceBenchmark}) {
    config.mode = mode;
    for (const int stop_after : {1, 4}) {
      const TrainResult result = RunAlone(config, stop_after);
      EXPECT_EQ(result.ending, Ending::kStopped);
      EXPECT_EQ(result.images_per_second, 0);
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(Trainer, StopsABenchmarkOnAllRanksWhenOneIsAskedTo) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.warmup_steps = 2;
  for (const RunMode mode : {RunMode::kTrainingBenchmark, RunMode::kInferenceBenchmark}) {
    config.mode = mode;
    RunRanks(2, [&](Communicator& communicator) {
      std::ostringstream log_text;
      const int stop_after = communicator.rank() == 1 ? 4 : 0;
      EXPECT_EQ(RunRank(config, communicator, log_text, stop_after).ending, Ending::kStopped);
    });
  }
}

TEST(Trainer, RejectsABenchmarkThatIsAllWarmUp) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.mode = RunMode::kTrainingBenchmark;
  config.warmup_steps = 6;
  EXPECT_THAT(Rejection(config, EX_USAGE), HasSubstr("--warmup_steps"));
}

}  // namespace
}  // namespace trainer
