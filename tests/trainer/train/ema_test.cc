// SPDX-License-Identifier: Apache-2.0
//
// Moving EMA weights (TrainConfig::ema), from the first step to the exported file.

#include "tests/support/test.h"
#include "tests/trainer/train/faulty_ranks.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/reader.h"

namespace trainer {
namespace {

TrainConfig AveragingConfig(const fs::path& directory) {
  TrainConfig config = SmallConfig(directory);
  config.mode = RunMode::kTrainAndEvaluate;
  config.ema = 0.75;
  config.checkpoint_every = 1;
  config.keep_checkpoints = 100;
  return config;
}

void ExpectSameCheckpoint(const fs::path& directory, const fs::path& other, std::int64_t step) {
  for (const char* file : {kModelFile, kOptimizerFile, kAverageFile}) {
    EXPECT_EQ(TensorsAt(directory, step, file), TensorsAt(other, step, file)) << file;
  }
}

TEST(Ema, FollowsWeightsAndStatisticsAfterEachUpdateByItsFormula) {
  const TemporaryDirectory directory;
  TrainConfig config = AveragingConfig(directory.path());
  config.accumulate = 2;
  RunTogether(1, config);
  for (std::int64_t step = 2; step <= 6; ++step) {
    const Tensors before = TensorsAt(directory.path(), step - 1, kAverageFile);
    const Tensors model = TensorsAt(directory.path(), step, kModelFile);
    const Tensors average = TensorsAt(directory.path(), step, kAverageFile);
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
    const LoggedRun averaging = RunTogether(ranks, config);
    config.model_dir = without.path();
    config.ema = 0;
    const LoggedRun plain = RunTogether(ranks, config);
    for (std::int64_t step = 1; step <= 6; ++step) {
      EXPECT_EQ(TensorsAt(with.path(), step, kModelFile),
                TensorsAt(without.path(), step, kModelFile));
      Tensors optimizer = TensorsAt(with.path(), step, kOptimizerFile);
      EXPECT_EQ(optimizer.erase("average_rank_statistics"), ranks == 1 ? 0U : 1U);
      EXPECT_EQ(optimizer, TensorsAt(without.path(), step, kOptimizerFile));
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
    const LoggedRun run = RunTogether(ranks, config);
    EXPECT_EQ(TensorsOf(ExportFile(config)), TensorsAt(directory.path(), 6, kAverageFile));
    EXPECT_THAT(run.log, HasSubstr("EMA weights written: "));

    config.mode = RunMode::kEvaluate;
    config.ema = 0;
    const LoggedRun saved = RunTogether(ranks, config);
    EXPECT_EQ(saved.result.evaluation->loss, run.result.evaluation->loss);
    EXPECT_THAT(saved.log, HasSubstr("EMA weights of step 6"));
    config.init_from = CheckpointDirectory(directory.path(), 6) / kAverageFile;
    EXPECT_EQ(RunTogether(ranks, config).result.evaluation->loss, run.result.evaluation->loss);
    config.init_from = directory.path();  // the best
    EXPECT_EQ(RunTogether(ranks, config).result.evaluation->loss, run.result.evaluation->loss);
  }
}

TEST(Ema, StaysWhereTheUpdateOfAStepIsLeftOut) {
  const TemporaryDirectory directory;
  TrainConfig config = AveragingConfig(directory.path());
  config.mode = RunMode::kTrain;
  config.on_nan = OnNan::kSkip;
  const auto ends = TrainWith({.steps = {2}, .is_of_loss_too = true}, config);
  EXPECT_EQ(ends[0].message + ends[1].message, "");
  EXPECT_EQ(TensorsAt(directory.path(), 3, kAverageFile),
            TensorsAt(directory.path(), 2, kAverageFile));
  EXPECT_EQ(TensorsAt(directory.path(), 3, kOptimizerFile),
            TensorsAt(directory.path(), 2, kOptimizerFile));
  EXPECT_NE(TensorsAt(directory.path(), 4, kAverageFile),
            TensorsAt(directory.path(), 3, kAverageFile));
}

TEST(Ema, GoesOnWithTheSameBits) {
  for (const int ranks : {1, 2}) {
    const TemporaryDirectory whole;
    const TemporaryDirectory stopped;
    RunTogether(ranks, AveragingConfig(whole.path()));
    const TrainConfig config = AveragingConfig(stopped.path());
    EXPECT_EQ(RunTogether(ranks, config, 3).result.ending, Ending::kStopped);
    const LoggedRun rest = RunTogether(ranks, config);
    EXPECT_THAT(rest.log, Not(HasSubstr("EMA weights in")));
    ExpectSameCheckpoint(whole.path(), stopped.path(), 6);
  }
}

TEST(Ema, StartsFromTheWeightsOfACheckpointThatHasNoneAndIsDroppedWhereItIsOff) {
  const TemporaryDirectory directory;
  TrainConfig config = AveragingConfig(directory.path());
  config.ema = 0;
  RunTogether(1, config, 3);
  config.ema = 0.75;
  EXPECT_THAT(RunTogether(1, config, 1).log,
              HasSubstr("--ema: the checkpoint has no EMA weights; they start from "));
  const Tensors before = TensorsAt(directory.path(), 3, kModelFile);
  const Tensors model = TensorsAt(directory.path(), 4, kModelFile);
  for (const auto& [name, values] : TensorsAt(directory.path(), 4, kAverageFile)) {
    const double expected = 0.75 * before.at(name)[0] + 0.25 * model.at(name)[0];
    EXPECT_NEAR(values[0], expected, 1e-6 * (1 + std::abs(expected))) << name;
  }
  config.ema = 0;
  EXPECT_THAT(RunTogether(1, config).log,
              HasSubstr("the EMA weights in the checkpoint are dropped, for --ema"));
  EXPECT_FALSE(fs::exists(CheckpointDirectory(directory.path(), 6) / kAverageFile));
}

TEST(Ema, StartsFromTheWeightsOfInitFrom) {
  const TemporaryDirectory first;
  const TemporaryDirectory second;
  TrainConfig config = AveragingConfig(first.path());
  RunTogether(1, config);
  config.init_from = CheckpointDirectory(first.path(), 6) / kModelFile;
  config.model_dir = second.path();
  config.schedule.lr_init = 0;  // weights and so their averages stay
  config.freeze_batch_norm = true;
  RunTogether(1, config);
  EXPECT_EQ(TensorsAt(second.path(), 6, kAverageFile), TensorsAt(first.path(), 6, kModelFile));
}

}  // namespace
}  // namespace trainer
