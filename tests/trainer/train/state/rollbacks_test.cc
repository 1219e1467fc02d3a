// SPDX-License-Identifier: Apache-2.0

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/train/faulty_ranks.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/backend/registry.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/control/run_control.h"
#include "trainer/core/error.h"
#include "trainer/train/state/network_state.h"
#include "trainer/train/state/snapshot.h"

namespace trainer {
namespace {

TEST(Rollbacks, GoOnBehindTheImagesOfTheStep) {
  Rollbacks rollbacks;
  EXPECT_EQ(rollbacks.Resume({30, 480}, 640, "x"), (Position{30, 640, 160}));
  EXPECT_EQ(rollbacks.Resume({40, 800, 160}, 816, "x"), (Position{40, 816, 176}));
}

TEST(Rollbacks, AreThreeInARowToACheckpointOrOlderOnes) {
  Rollbacks rollbacks;
  for (const std::int64_t newest : {10, 20}) {
    for (const std::int64_t step : {newest, newest - 1, newest}) {
      rollbacks.Resume({step, 100}, 200, "x");
    }
    EXPECT_EQ(rollbacks.in_a_row(), 3);
  }
  EXPECT_THAT(
      tests::Rejection<Error>(EX_SOFTWARE,
                              [&] {
                                rollbacks.Resume({20, 100}, 200, "step 25: the loss is nan");
                              }),
      HasSubstr("step 25: the loss is nan, after 3 rollbacks to the checkpoint of step 20 "
                "from which none newer came: training has diverged; start again"));
}

TrainConfig RollbackConfig(const fs::path& directory) {
  TrainConfig config = SmallConfig(directory);
  config.on_nan = OnNan::kRollback;
  config.schedule.num_iter = 10;
  config.checkpoint_every = 3;
  config.keep_checkpoints = 100;
  return config;
}

Manifest ManifestAt(const fs::path& directory, std::int64_t step) {
  return ReadCheckpoint(CheckpointDirectory(directory, step)).manifest;
}

// `directory` with the checkpoint of `step` of `from` alone, as `change` has it.
void CopyCheckpoint(const fs::path& from, std::int64_t step, const fs::path& directory,
                    const std::function<void(CheckpointState&)>& change = {}) {
  const fs::path copy = CheckpointDirectory(directory, step);
  fs::create_directories(copy);
  fs::copy(CheckpointDirectory(from, step), copy, fs::copy_options::recursive);
  if (!change) return;
  Manifest manifest = ReadManifest(copy);
  change(manifest.state);
  std::ofstream(copy / "manifest.json") << ToJson(manifest);
}

void ExpectGoodEnd(const std::vector<FaultyEnd>& ends) {
  for (const FaultyEnd& end : ends) EXPECT_EQ(end.message, "");
}

class GoingBack : public SmallRun {
 protected:
  GoingBack() { config_ = RollbackConfig(directory_.path()); }
};

// A run that goes back equals one that begins at the checkpoint and is told to take other images;
// and what follows its next checkpoint follows as well where all before is forgotten.
TEST_F(GoingBack, IsGoingOnFromTheCheckpointWithTheImagesBehindTheStep) {
  for (const std::int64_t accumulate : {1, 2}) {
    SCOPED_TRACE(accumulate);
    const TemporaryDirectory directory;
    TrainConfig config = RollbackConfig(directory.path() / "run");
    config.accumulate = accumulate;
    const std::int64_t images = 8 * accumulate;
    const auto ends = TrainWith({.steps = {4}, .is_of_loss_too = true}, config);
    ExpectGoodEnd(ends);
    EXPECT_THAT(
        ends[0].log,
        AllOf(HasSubstr("step 4: the loss is nan (learning rate "),
              HasSubstr("): rolled back to step 3 (--on_nan=rollback, 1 of at most 3 to this "
                        "checkpoint); the " +
                        std::to_string(2 * images) +
                        " images from there to the end of step 4 are skipped, training continues "
                        "after them in epoch "),
              Not(HasSubstr("resumed from step"))));
    EXPECT_THAT(ends[1].log, Not(HasSubstr("rollback")));
    const Manifest end = ManifestAt(config.model_dir, 10);
    EXPECT_EQ(end.state.skipped_images, 2 * images);
    EXPECT_EQ(end.state.epoch * 64 + end.state.epoch_samples, 12 * images);
    EXPECT_EQ(ManifestAt(config.model_dir, 3).state.skipped_images, 0);

    TrainConfig logged = config;
    logged.model_dir = directory.path() / "told";
    CopyCheckpoint(config.model_dir, 3, logged.model_dir, [&](CheckpointState& state) {
      state.epoch = 5 * images / 64;
      state.epoch_samples = 5 * images % 64;
      state.skipped_images = 2 * images;
    });
    ExpectGoodEnd(TrainWith({}, logged));
    EXPECT_EQ(ManifestAt(logged.model_dir, 10), end);

    TrainConfig resumed = config;
    resumed.model_dir = directory.path() / "resumed";
    CopyCheckpoint(config.model_dir, 6, resumed.model_dir);
    ExpectGoodEnd(TrainWith({}, resumed));
    EXPECT_EQ(ManifestAt(resumed.model_dir, 10), end);

    TrainConfig sound = config;
    sound.model_dir = directory.path() / "sound";
    ExpectGoodEnd(TrainWith({}, sound));
    EXPECT_EQ(ManifestAt(sound.model_dir, 3), ManifestAt(config.model_dir, 3));
    EXPECT_NE(ManifestAt(sound.model_dir, 10).files, end.files);
  }
}

TEST_F(GoingBack, RestoresAllOnEveryBackEnd) {
  for (const std::string& backend : BackendNames()) {
    if (!BackendProblem(backend).empty()) continue;
    SCOPED_TRACE(backend);
    const TemporaryDirectory directory;
    TrainConfig config = RollbackConfig(directory.path() / "run");
    ExpectGoodEnd(TrainWith({.steps = {5}}, config, 2, false, backend));
    TrainConfig resumed = config;
    resumed.model_dir = directory.path() / "resumed";
    CopyCheckpoint(config.model_dir, 6, resumed.model_dir);
    ExpectGoodEnd(TrainWith({}, resumed, 2, false, backend));
    EXPECT_EQ(ManifestAt(resumed.model_dir, 10), ManifestAt(config.model_dir, 10));
  }
}

TEST_F(GoingBack, EndsAnEpochWithFewerStepsAndTheSameImages) {
  config_.mode = RunMode::kTrainAndEvaluate;
  config_.eval_every = 1;
  config_.schedule.iter_unit = IterationUnit::kEpoch;
  config_.schedule.num_iter = 2;  // of 8 steps
  config_.checkpoint_every = 5;
  ExpectGoodEnd(TrainWith({.steps = {6, 12}}, config_));  // of which the last is step 10
  // After 8 steps' images, of which 2 were skipped.
  EXPECT_TRUE(ManifestAt(directory_.path(), 6).state.top1.has_value());
  const CheckpointState end = ManifestAt(directory_.path(), 13).state;
  EXPECT_EQ(end.epoch, 2);
  EXPECT_EQ(end.epoch_samples, 0);
  EXPECT_EQ(end.skipped_images, 24);
  // All is done, and is known to be.
  const auto again = TrainWith({}, config_);
  ExpectGoodEnd(again);
  EXPECT_THAT(again[0].log, HasSubstr("resumed from step 13, after 0 of the 64 images of epoch 3"));
}

TEST_F(GoingBack, FromTheLastStepLeavesTheCheckpointTheEnd) {
  config_.schedule.iter_unit = IterationUnit::kEpoch;
  config_.schedule.num_iter = 1;
  config_.export_dir = directory_.path();
  ExpectGoodEnd(TrainWith({.steps = {7}}, config_));
  EXPECT_EQ(ListCheckpoints(directory_.path()).front().step, 6);
  EXPECT_EQ(TensorsOf(ExportFile(config_)), TensorsAt(directory_.path(), 6));
}

TEST_F(GoingBack, GoesToTheInitialWeightsWhereNoCheckpointWasDue) {
  config_.checkpoint_every = 100;
  const auto ends = TrainWith({.steps = {1}}, config_);
  ExpectGoodEnd(ends);
  EXPECT_THAT(ends[0].log,
              HasSubstr("rolled back to step 0 (--on_nan=rollback, 1 of at most 3 to this "
                        "checkpoint); the 16 images from there to the end of step 1"));
  EXPECT_EQ(ManifestAt(directory_.path(), 10).state.epoch_samples, 12 * 8 % 64);
  // One that goes on has no need of another.
  config_.schedule.num_iter = 12;
  const auto again = TrainWith({}, config_);
  EXPECT_THAT(again[0].log, Not(HasSubstr("checkpoint of step 10 written")));
}

struct Divergence {
  double rate;
  bool in_background = true;
  bool evaluates = false;
};

// What is written or evaluated before the weights are found to be no numbers is not to be had.
TEST_F(GoingBack, EndsWhereItIsNoHelpSayingSoOnAllRanks) {
  for (const auto& [rate, in_background, evaluates] :
       {Divergence{1e30}, Divergence{1e40}, Divergence{1e40, false}, Divergence{1e40, true, true},
        Divergence{1e40, false, true}}) {
    SCOPED_TRACE(testing::Message() << rate << ' ' << in_background << ' ' << evaluates);
    const TemporaryDirectory directory;
    TrainConfig config = RollbackConfig(directory.path());
    config.schedule.lr_init = rate;
    config.weight_decay = 1000;  // some weights are beyond the largest number with the second rate
    config.checkpoint_every = rate < 1e38 ? 100 : 1;
    config.checkpoint_in_background = in_background;
    if (evaluates) config.mode = RunMode::kTrainAndEvaluate;
    config.eval_every = evaluates ? 1 : 0;
    const auto ends = TrainWith({}, config);
    EXPECT_THAT(ends[0].message,
                AllOf(HasSubstr("step 1: the weights are too large or NaN (learning rate "),
                      HasSubstr("after 3 rollbacks to the checkpoint of step 0 from which none "
                                "newer came: training has diverged")));
    EXPECT_EQ(ends[1].message, ends[0].message);
    EXPECT_EQ(ends[1].exit_code, EX_SOFTWARE);
    EXPECT_EQ(ListCheckpoints(directory.path()).size(), 1U);
    const bool is_rejected = ends[0].log.find("the weights are not written: ") != std::string::npos;
    EXPECT_EQ(is_rejected, rate > 1e38);
    const bool is_left_out =
        ends[0].log.find("the loss of the evaluation is ") != std::string::npos;
    EXPECT_EQ(is_left_out, evaluates);
  }
}

TEST_F(GoingBack, IsComparedByParanoidRanks) {
  config_.paranoid = 1;
  ExpectGoodEnd(TrainWith({.steps = {3, 4, 8}}, config_, 3));
  EXPECT_EQ(ManifestAt(directory_.path(), 10).state.skipped_images, 3 * 12);
}

// What asks for a stop in the bad step gets a checkpoint that is behind it.
TEST_F(GoingBack, ObeysOrdersAfterTheStepThatFollows) {
  const Fault fault = {.rank = 0, .steps = {4}};
  std::atomic<bool> ended = false;
  RunControl control({}, 10);
  RunStatus of_return;
  ThreadWorld world(2);
  const auto run = [&](int rank) {
    FaultyCommunicator communicator(world, rank, fault, ended);
    std::ostringstream log;
    if (rank == 1) return RunRank(config_, communicator, log);
    RunRequests requests({.directory = directory_.path(),
                          .limit = {},
                          .log = MakeLogger(log, 0, "off"),
                          .control = &control});
    bool was_asked = false;
    const auto before_step = [&](std::int64_t step) {
      if (was_asked) of_return = control.status();
      if (step == 4 && !std::exchange(was_asked, true)) control.Take({ControlCommand::kStop});
    };
    return RunRank(config_, communicator, log, 0, "reference", &requests, before_step);
  };
  TrainResult result;
  std::jthread other([&] { run(1); });
  result = run(0);
  EXPECT_EQ(of_return.step, 3);
  EXPECT_EQ(of_return.checkpoint_step, 3);
  EXPECT_THAT(of_return.requested, ElementsAre(ControlCommand::kStop));
  EXPECT_EQ(result.ending, Ending::kStopped);
  EXPECT_EQ(result.step, 4);
  EXPECT_EQ(ManifestAt(directory_.path(), 4).state.skipped_images, 16);
}

// An evaluation in which the device lets this rank down, as cuDNN says it.
class FailingSource : public DataLoader {
 public:
  explicit FailingSource(DataLoader& source) : source_(source) {}
  std::int64_t samples() const override { return source_.samples(); }
  std::vector<ConsistencyItem> items() const override { return source_.items(); }
  void Seek(const Position& position) override { source_.Seek(position); }
  bool Next(HostBatch& /*batch*/) override {
    throw Error(EX_SOFTWARE, "cuDNN: running a convolution: CUDNN_STATUS_EXECUTION_FAILED");
  }

 private:
  DataLoader& source_;
};

TEST(Rollback, IsNotForAnEvaluationThatFails) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.mode = RunMode::kTrainAndEvaluate;
  config.eval_every = 2;
  config.on_nan = OnNan::kRollback;
  config.checkpoint_every = 1000;
  const auto backend = MakeBackend("reference", {.threads = 1});
  OneRank communicator;
  GeneratedSourceOptions options;
  options.batch = config.batch_size;
  options.classes = static_cast<int>(config.classes);
  GeneratedSource training(options);
  options.training = false;
  GeneratedSource whole(options);
  FailingSource evaluation(whole);
  std::ostringstream log;
  const TrainerDeps deps{.backend = *backend,
                         .communicator = communicator,
                         .training = &training,
                         .evaluation = &evaluation,
                         .outputs = {MakeLogger(log, 0, "info")}};
  EXPECT_THAT(tests::Rejection<Error>([&] { RunTrainer(config, deps); }),
              HasSubstr("CUDNN_STATUS_EXECUTION_FAILED"));
}

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
  state.settings = {
      {"--backend", "cuda"}, {"--lr_init", "0.1"}, {"--precision", "fp16"}, {"--shuffle", "epoch"}};
  state.data.training = {"100 images in 2 files, listing 01234567", "89abcdef"};
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
  now.settings = {
      {"--backend", "cpu"}, {"--lr_init", "0.2"}, {"--precision", "fp32"}, {"--shuffle", "none"}};
  now.data.training = {"99 images in 1 files, listing 01234568", "89abcdee"};
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
          "training data 100 images in 2 files (now 99 images in 1 file)" + order,
          "--backend cuda (now cpu); it computes the same but for rounding",
          "--lr_init 0.1 (now 0.2)", "--shuffle epoch (now none)" + order));
}

TEST(Changes, OtherThreadsRoundOtherwise) {
  CheckpointState then = State();
  CheckpointState now = State();
  then.settings["--threads"] = "4";
  EXPECT_THAT(ChangesSince(then, now), IsEmpty());  // the back end has none now
  now.settings["--threads"] = "2";
  EXPECT_THAT(ChangesSince(then, now),
              ElementsAre("--threads 4 (now 2); sums are added in another order, so they are "
                          "rounded otherwise"));
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
  older.data = {};
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
