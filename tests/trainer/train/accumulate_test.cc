// SPDX-License-Identifier: Apache-2.0
//
// Steps of several batches (TrainConfig::accumulate), from the schedule to the checkpoint.

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/train/faulty_ranks.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/core/error.h"
#include "trainer/train/logging/log_dispatcher.h"

namespace trainer {
namespace {

TrainConfig AccumulatingConfig(const fs::path& directory, std::int64_t batch,
                               std::int64_t accumulate) {
  TrainConfig config = SmallConfig(directory);
  config.batch_size = batch;
  config.accumulate = accumulate;
  config.freeze_batch_norm = true;
  config.schedule.lr_init = 0.5;
  config.dump_state = directory / "state.safetensors";
  config.dump_state_step = 1;
  return config;
}

// What is left with batch norm frozen is the order of sums.  The dumped gradients are means over
// the global batch: a wrong divisor would show in them at once.
TEST(Accumulate, BatchesTogetherAreOneLargeBatchWhateverTheRanks) {
  const TemporaryDirectory whole;
  EXPECT_EQ(RunTogether(1, AccumulatingConfig(whole.path(), 8, 1)).result.step, 6);
  const Tensors model = TensorsAt(whole.path(), 6);
  const Tensors state = TensorsOf(whole.path() / "state.safetensors");
  struct Split {
    int ranks, batch, accumulate, short_ranks = 0;
  };
  for (const Split split : {Split{1, 4, 2}, Split{1, 2, 4}, Split{2, 2, 2}, Split{2, 1, 4},
                            Split{3, 2, 2, 2}, Split{3, 1, 3, 1}, Split{5, 1, 2, 2}}) {
    SCOPED_TRACE(testing::Message() << split.ranks << " ranks, " << split.accumulate);
    const TemporaryDirectory directory;
    TrainConfig config = AccumulatingConfig(directory.path(), split.batch, split.accumulate);
    config.short_ranks = split.short_ranks;
    EXPECT_EQ(RunTogether(split.ranks, config).result.step, 6);
    ExpectNearlyEqual(TensorsAt(directory.path(), 6), model);
    ExpectNearlyEqual(TensorsOf(directory.path() / "state.safetensors"), state);
    const CheckpointState saved = ReadManifest(CheckpointDirectory(directory.path(), 6)).state;
    EXPECT_EQ(saved.epoch_samples, 48);
    EXPECT_EQ(saved.global_batch, 8);
  }
}

// The weight that an image is mixed with is its own, whichever rank and batch it comes in; with
// whom it is mixed is a matter of the batch.
TEST(Accumulate, MixesTheSameBatchesAlikeWhateverTheRanks) {
  struct Split {
    int ranks, batch, accumulate;
  };
  const auto run = [](const Split& split, const TemporaryDirectory& directory) {
    TrainConfig config = AccumulatingConfig(directory.path(), split.batch, split.accumulate);
    config.mixup = 0.4;
    EXPECT_EQ(RunTogether(split.ranks, config).result.step, 6);
    return TensorsOf(directory.path() / "state.safetensors");
  };
  for (const auto& splits : {std::vector<Split>{{1, 4, 2}, {2, 4, 1}},
                             std::vector<Split>{{1, 2, 4}, {2, 2, 2}, {4, 2, 1}}}) {
    const TemporaryDirectory first;
    const Tensors state = run(splits[0], first);
    for (std::size_t i = 1; i < splits.size(); ++i) {
      SCOPED_TRACE(testing::Message() << splits[i].ranks << " ranks");
      const TemporaryDirectory other;
      ExpectNearlyEqual(run(splits[i], other), state);
      ExpectNearlyEqual(TensorsAt(other.path(), 6), TensorsAt(first.path(), 6));
    }
  }
}

// With a learning rate of 0 the weights stay: what two steps see, one of two batches sees.
TEST(Accumulate, EachBatchUpdatesTheRunningStatisticsInItsTurn) {
  const TemporaryDirectory separate;
  const TemporaryDirectory together;
  TrainConfig config = SmallConfig(separate.path());
  config.schedule.lr_init = 0;
  RunAlone(config);
  config.model_dir = together.path();
  config.accumulate = 2;
  config.schedule.num_iter = 3;
  RunAlone(config);
  EXPECT_EQ(TensorsAt(together.path(), 3), TensorsAt(separate.path(), 6));
}

TEST(Accumulate, AStoppedRunGoesOnBitEqualFromEachOfItsSteps) {
  const auto run = [](const fs::path& directory, int ranks, int stop_after) {
    TrainConfig config = SmallConfig(directory);
    config.batch_size = 2;
    config.accumulate = 3;
    config.mixup = 0.4;
    config.schedule.num_iter = 4;
    config.schedule.lr_init = 0.5;
    EXPECT_EQ(RunTogether(ranks, config, stop_after).result.step, stop_after > 0 ? stop_after : 4);
  };
  for (const int ranks : {1, 2}) {
    const TemporaryDirectory straight;
    run(straight.path(), ranks, 0);
    const Tensors optimizer = TensorsAt(straight.path(), 4, "optimizer.safetensors");
    for (const int stop_after : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, after " << stop_after);
      const TemporaryDirectory stopped;
      run(stopped.path(), ranks, stop_after);
      run(stopped.path(), ranks, 0);
      EXPECT_EQ(TensorsAt(stopped.path(), 4), TensorsAt(straight.path(), 4));
      EXPECT_EQ(TensorsAt(stopped.path(), 4, "optimizer.safetensors"), optimizer);
    }
  }
}

// Each image has a draw of its own, by its number: batches of a step do not share theirs.
TEST(Accumulate, BatchesOfAStepAreMixedEachInItsOwnWay) {
  const auto state_after_one_step = [](std::int64_t batch, std::int64_t accumulate) {
    const TemporaryDirectory directory;
    TrainConfig config = AccumulatingConfig(directory.path(), batch, accumulate);
    config.mixup = 0.4;
    config.schedule.num_iter = accumulate == 1 ? 2 : 1;
    config.schedule.lr_init = 0;
    config.momentum = 1;  // adds gradients up
    config.weight_decay = 0;
    config.dump_state_step = config.schedule.num_iter;
    RunAlone(config);
    return TensorsOf(config.dump_state);
  };
  Tensors separate = state_after_one_step(4, 1);
  Tensors together = state_after_one_step(4, 2);
  for (float& value : together.at("momentum.fc.weight")) value *= 2;  // of a mean
  ExpectNearlyEqual({{"fc", together.at("momentum.fc.weight")}},
                    {{"fc", separate.at("momentum.fc.weight")}});
}

// One judgement for all batches of a step, and no trace of it in the steps that follow.
TEST(Accumulate, AStepThatIsLeftOutLeavesNoTrace) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.accumulate = 2;
  config.on_nan = OnNan::kSkip;
  config.checkpoint_every = 1;
  config.schedule.num_iter = 3;
  config.schedule.lr_init = 0.5;
  for (const FaultyEnd& end : TrainWith({.rank = 1, .steps = {1}}, config)) {
    EXPECT_EQ(end.message, "");
  }
  EXPECT_EQ(TensorsAt(directory.path(), 2), TensorsAt(directory.path(), 1));
  EXPECT_NE(TensorsAt(directory.path(), 3), TensorsAt(directory.path(), 2));
  for (const auto& [name, values] : TensorsAt(directory.path(), 3)) {
    for (const float value : values) ASSERT_TRUE(std::isfinite(value)) << name;
  }
}

TEST(Accumulate, AnotherNumberOfBatchesTakesTheImagesThatFollow) {
  const TemporaryDirectory directory;
  TrainConfig config = AccumulatingConfig(directory.path(), 4, 2);
  config.settings = {{"--accumulate", "2"}};
  config.schedule.run_iter = 3;
  RunAlone(config);
  config.accumulate = 3;
  config.settings = {{"--accumulate", "3"}};
  config.schedule.run_iter = -1;
  const LoggedRun run = RunTogether(1, config);
  EXPECT_EQ(run.result.step, 6);
  EXPECT_THAT(run.log,
              AllOf(HasSubstr("resumed from step 3, after 24 of the 64 images of epoch 1: "),
                    HasSubstr("changed since step 3: images in a step 8 (now 12); "),
                    HasSubstr("changed since step 3: --accumulate 2 (now 3)\n")));
  EXPECT_EQ(ReadManifest(CheckpointDirectory(directory.path(), 6)).state.epoch_samples, 60);
}

// As where nodes are lost: the images of a step, and with batch norm frozen the weights, are as if
// nothing had been.
TEST(Accumulate, ARunGoesOnWithFewerRanksAndTheSameStep) {
  const auto run = [](const TemporaryDirectory& directory, const GlobalBatch& batch,
                      std::int64_t steps) {
    TrainConfig config = AccumulatingConfig(directory.path(), batch.batch_size, batch.accumulate);
    config.short_ranks = batch.short_ranks;
    config.dump_state.clear();
    config.schedule.run_iter = steps;
    RunTogether(batch.world_size, config);
  };
  const TemporaryDirectory whole;
  run(whole, {2, 4}, 6);
  const TemporaryDirectory deps;
  run(deps, {2, 4}, 2);
  run(deps, {2, 3, 2, 2}, 2);
  run(deps, {2, 2, 2}, 2);
  ExpectNearlyEqual(TensorsAt(deps.path(), 6), TensorsAt(whole.path(), 6));
  EXPECT_EQ(ReadManifest(CheckpointDirectory(deps.path(), 6)).state.epoch_samples, 48);
}

TEST(Accumulate, RejectsAStepOfMoreImagesThanThereAre) {
  TrainConfig config = SmallConfig("unused");
  config.accumulate = 9;
  EXPECT_EQ(tests::Rejection<Error>(EX_CONFIG, [&] { DescribeRun(config, 2, 64); }),
            "the training set has 64 images, less than one step of 2 ranks x 9 batches x 4: "
            "give a smaller --accumulate or --batch_size or start fewer ranks");
}

TEST(Accumulate, TheScheduleCountsUpdates) {
  TrainConfig config = SmallConfig("unused");
  config.accumulate = 4;
  config.schedule.iter_unit = IterationUnit::kEpoch;
  config.schedule.num_iter = 2;
  const std::vector<std::string> rows = DescribeRun(config, 2, 64);
  EXPECT_THAT(rows[1], HasSubstr("32 images (2 ranks x 4 batches x 4)"));
  EXPECT_THAT(rows[2], HasSubstr("4 in 2 epochs of 2"));
  EXPECT_THAT(rows[3], HasSubstr("0.375 after"));  // 3 * 32 / 256
}

}  // namespace
}  // namespace trainer
