// SPDX-License-Identifier: Apache-2.0

#include "tests/support/test.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/backend/registry.h"
#include "trainer/train/state/network_state.h"
#include "trainer/train/state/snapshot.h"

namespace trainer {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

CheckpointState State() {
  CheckpointState state;
  state.step = 10;
  state.epoch = 2;
  state.epoch_samples = 30;
  state.world_size = 2;
  state.global_batch = 16;
  state.seed = 1;
  state.precision = "fp16";
  state.program_version = "0.1.0";
  state.settings = {{"--backend", "cuda"},
                    {"--lr_init", "0.1"},
                    {"--precision", "fp16"},
                    {"--shuffle", "epoch"},
                    {"data", "100 images"}};
  return state;
}

TEST(Changes, NothingHasChangedBetweenEqualStates) {
  EXPECT_THAT(ChangesSince(State(), State()), IsEmpty());
}

TEST(Changes, WhereARunStandsAndItsLossScaleAreNoChange) {
  CheckpointState now = State();
  now.step = 11;
  now.epoch_samples = 31;
  now.loss_scale = 512;
  now.loss_scale_good_steps = 7;
  EXPECT_THAT(ChangesSince(State(), now), IsEmpty());
}

TEST(Changes, EachIsATextOfItsOwnThatSaysWhatComesOfIt) {
  CheckpointState now = State();
  now.world_size = 3;
  now.global_batch = 24;
  now.precision = "fp32";
  now.seed = 7;
  now.program_version = "0.2.0";
  now.settings = {{"--backend", "cpu"},
                  {"--lr_init", "0.2"},
                  {"--precision", "fp32"},
                  {"--shuffle", "none"},
                  {"data", "99 images"}};
  const std::string order =
      "; the order is another one, so in epoch 3 images may come twice or be left out";
  EXPECT_THAT(
      ChangesSince(State(), now),
      ElementsAre(
          "ranks 2 (now 3); all continue with the mean of the running statistics of batch norm",
          "images in a step 16 (now 24); the learning rate is that of the new number, at the same "
          "place of the epoch",
          "computed in fp16 (now fp32); there is no loss scale any more",
          "--seed 1 (now 7)" + order, "version 0.1.0 (now 0.2.0)",
          "--backend cuda (now cpu); it computes the same but for rounding",
          "--lr_init 0.1 (now 0.2)", "--shuffle epoch (now none)" + order,
          "data 100 images (now 99 images)" + order));
}

TEST(Changes, AnotherOrderFromTheStartOfAnEpochHasNoImageTwice) {
  CheckpointState now = State();
  now.epoch_samples = 0;
  now.seed = 7;
  EXPECT_THAT(ChangesSince(State(), now), ElementsAre("--seed 1 (now 7)"));
}

TEST(Changes, ALossScaleStartsAfreshIn16Bits) {
  CheckpointState then = State();
  then.precision = "fp32";
  EXPECT_THAT(ChangesSince(then, State()),
              ElementsAre("computed in fp32 (now fp16); a loss scale that adapts itself starts "
                          "afresh"));
}

// fp32 and tf32 are one type in memory.
TEST(Changes, AnOptionForTheSameTypeIsNamedAsAnOption) {
  CheckpointState now = State();
  now.settings["--precision"] = "tf32";
  EXPECT_THAT(ChangesSince(State(), now), ElementsAre("--precision fp16 (now tf32)"));
}

TEST(Changes, WhatOneOfTheTwoDoesNotKnowIsLeftOut) {
  CheckpointState older = State();
  older.precision = "";
  older.settings = {{"--of_old", "1"}};
  EXPECT_THAT(ChangesSince(older, State()), IsEmpty());
}

TEST(RankStatistics, RowsAreInTheOrderOfTheRanksOnEveryRank) {
  RunRanks(3, [](Communicator& communicator) {
    const auto r = static_cast<float>(communicator.rank());
    const std::vector<float> own = {r, 10 * r};
    EXPECT_THAT(GatherRows(own, communicator), ElementsAre(0, 0, 1, 10, 2, 20));
    EXPECT_THAT(MeanOverRanks(own, communicator), ElementsAre(1, 10));
  });
}

TEST(RankStatistics, MeanOfEqualRowsHasTheirBits) {
  const std::vector<float> rows(7, 0.1F);
  EXPECT_THAT(MeanOfRows(rows, 7), Each(0.1F));
}

TEST(RankStatistics, ImportThenExportGivesTheSameBits) {
  const auto backend = MakeBackend("reference", {});
  const auto stream = backend->MakeStream();
  Network network(*backend, {"resnet_tiny", 2, 32, 32, 4, 0});
  std::vector<float> row = ExportStatistics(network, *stream);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = 1.0F / static_cast<float>(i + 1);
  ImportStatistics(network, row, *stream);
  EXPECT_EQ(ExportStatistics(network, *stream), row);
}

}  // namespace
}  // namespace trainer
