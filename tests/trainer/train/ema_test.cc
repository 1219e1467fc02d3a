// SPDX-License-Identifier: Apache-2.0
//
// Moving averages of the weights (TrainConfig::ema), from the first step to the exported file.

#include "tests/support/test.h"
#include "tests/trainer/train/faulty_ranks.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

using AveragedTensors = std::map<std::string, std::vector<float>>;

TrainConfig AveragingConfig(const fs::path& directory) {
  TrainConfig config = SmallConfig(directory);
  config.mode = RunMode::kTrainAndEvaluate;
  config.ema = 0.75;
  config.checkpoint_every = 1;
  config.keep_checkpoints = 100;
  return config;
}

struct AveragingRun {
  TrainResult result;
  std::string log;  // of rank 0
};

AveragingRun RunAveraging(const TrainConfig& config, int ranks = 1, int stop_after = 0) {
  AveragingRun run;
  RunRanks(ranks, [&](Communicator& communicator) {
    std::ostringstream log;
    TrainResult result = RunRank(config, communicator, log, stop_after);
    if (communicator.rank() == 0) run = {std::move(result), log.str()};
  });
  return run;
}

AveragedTensors FileOf(const fs::path& directory, std::int64_t step, const char* file) {
  return TensorsOf(CheckpointDirectory(directory, step) / file);
}

void ExpectSameCheckpoint(const fs::path& directory, const fs::path& other, std::int64_t step) {
  for (const char* file : {kModelFile, kOptimizerFile, kAverageFile}) {
    EXPECT_EQ(FileOf(directory, step, file), FileOf(other, step, file)) << file;
  }
}

TEST(Ema, FollowsWeightsAndStatisticsAfterEachUpdateByItsFormula) {
  const TemporaryDirectory directory;
  TrainConfig config = AveragingConfig(directory.path());
  config.accumulate = 2;
  RunAveraging(config);
  for (std::int64_t step = 2; step <= 6; ++step) {
    const AveragedTensors before = FileOf(directory.path(), step - 1, kAverageFile);
    const AveragedTensors model = FileOf(directory.path(), step, kModelFile);
    const AveragedTensors average = FileOf(directory.path(), step, kAverageFile);
    ASSERT_EQ(average.size(), model.size());
    EXPECT_NE(average, model);
    for (const auto& [name, values] : average) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double expected = 0.75 * before.at(name)[i] + 0.25 * model.at(name)[i];
        ASSERT_NEAR(values[i], expected, 1e-6 * (1 + std::abs(expected))) << name;
      }
    }
  }
}

TEST(Ema, ChangesNotOneBitOfTheTraining) {
  for (const int ranks : {1, 2}) {
    const TemporaryDirectory with;
    const TemporaryDirectory without;
    TrainConfig config = AveragingConfig(with.path());
    config.eval_every = 2;
    const AveragingRun averaging = RunAveraging(config, ranks);
    config.model_dir = without.path();
    config.ema = 0;
    const AveragingRun plain = RunAveraging(config, ranks);
    for (std::int64_t step = 1; step <= 6; ++step) {
      EXPECT_EQ(FileOf(with.path(), step, kModelFile), FileOf(without.path(), step, kModelFile));
      AveragedTensors optimizer = FileOf(with.path(), step, kOptimizerFile);
      EXPECT_EQ(optimizer.erase("average_rank_statistics"), ranks == 1 ? 0U : 1U);
      EXPECT_EQ(optimizer, FileOf(without.path(), step, kOptimizerFile));
    }
    EXPECT_FALSE(fs::exists(CheckpointDirectory(without.path(), 6) / kAverageFile));
    EXPECT_NE(averaging.result.evaluation->loss, plain.result.evaluation->loss);
  }
}

TEST(Ema, EvaluationsAndExportsAreOfTheAverages) {
  for (const int ranks : {1, 2}) {
    const TemporaryDirectory directory;
    TrainConfig config = AveragingConfig(directory.path());
    config.export_dir = directory.path();
    const AveragingRun run = RunAveraging(config, ranks);
    EXPECT_EQ(TensorsOf(ExportFile(config)), FileOf(directory.path(), 6, kAverageFile));
    EXPECT_THAT(run.log, HasSubstr("averages of the weights written: "));

    config.mode = RunMode::kEvaluate;
    config.ema = 0;
    const AveragingRun saved = RunAveraging(config, ranks);
    EXPECT_EQ(saved.result.evaluation->loss, run.result.evaluation->loss);
    EXPECT_THAT(saved.log, HasSubstr("averages of the weights of step 6"));
    config.init_from = CheckpointDirectory(directory.path(), 6) / kAverageFile;
    EXPECT_EQ(RunAveraging(config, ranks).result.evaluation->loss, run.result.evaluation->loss);
    config.init_from = directory.path();  // the best
    EXPECT_EQ(RunAveraging(config, ranks).result.evaluation->loss, run.result.evaluation->loss);
  }
}

TEST(Ema, StaysWhereTheUpdateOfAStepIsLeftOut) {
  const TemporaryDirectory directory;
  TrainConfig config = AveragingConfig(directory.path());
  config.mode = RunMode::kTrain;
  config.on_nan = OnNan::kSkip;
  const auto ends = TrainWith({.steps = {2}, .is_of_loss_too = true}, config);
  EXPECT_EQ(ends[0].message + ends[1].message, "");
  EXPECT_EQ(FileOf(directory.path(), 3, kAverageFile), FileOf(directory.path(), 2, kAverageFile));
  EXPECT_EQ(FileOf(directory.path(), 3, kOptimizerFile),
            FileOf(directory.path(), 2, kOptimizerFile));
  EXPECT_NE(FileOf(directory.path(), 4, kAverageFile), FileOf(directory.path(), 3, kAverageFile));
}

TEST(Ema, GoesOnWithTheSameBits) {
  for (const int ranks : {1, 2}) {
    const TemporaryDirectory whole;
    const TemporaryDirectory stopped;
    RunAveraging(AveragingConfig(whole.path()), ranks);
    const TrainConfig config = AveragingConfig(stopped.path());
    EXPECT_EQ(RunAveraging(config, ranks, 3).result.ending, Ending::kStopped);
    const AveragingRun rest = RunAveraging(config, ranks);
    EXPECT_THAT(rest.log, Not(HasSubstr("averages of the weights in")));
    ExpectSameCheckpoint(whole.path(), stopped.path(), 6);
  }
}

TEST(Ema, StartsFromTheWeightsOfACheckpointThatHasNoneAndIsDroppedWhereItIsOff) {
  const TemporaryDirectory directory;
  TrainConfig config = AveragingConfig(directory.path());
  config.ema = 0;
  RunAveraging(config, 1, 3);
  config.ema = 0.75;
  EXPECT_THAT(RunAveraging(config, 1, 1).log,
              HasSubstr("--ema: the checkpoint has no averages of the weights; they start from "));
  const AveragedTensors before = FileOf(directory.path(), 3, kModelFile);
  const AveragedTensors model = FileOf(directory.path(), 4, kModelFile);
  for (const auto& [name, values] : FileOf(directory.path(), 4, kAverageFile)) {
    const double expected = 0.75 * before.at(name)[0] + 0.25 * model.at(name)[0];
    EXPECT_NEAR(values[0], expected, 1e-6 * (1 + std::abs(expected))) << name;
  }
  config.ema = 0;
  EXPECT_THAT(RunAveraging(config).log,
              HasSubstr("the averages of the weights in the checkpoint are dropped, for --ema"));
  EXPECT_FALSE(fs::exists(CheckpointDirectory(directory.path(), 6) / kAverageFile));
}

TEST(Ema, StartsFromTheWeightsOfInitFrom) {
  const TemporaryDirectory first;
  const TemporaryDirectory second;
  TrainConfig config = AveragingConfig(first.path());
  RunAveraging(config);
  config.init_from = CheckpointDirectory(first.path(), 6) / kModelFile;
  config.model_dir = second.path();
  config.schedule.lr_init = 0;  // weights and so their averages stay
  config.freeze_batch_norm = true;
  RunAveraging(config);
  EXPECT_EQ(FileOf(second.path(), 6, kAverageFile), FileOf(first.path(), 6, kModelFile));
}

}  // namespace
}  // namespace trainer
