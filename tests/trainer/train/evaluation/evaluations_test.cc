// SPDX-License-Identifier: Apache-2.0

#include <csignal>

#include "tests/support/test.h"
#include "tests/trainer/checkpoint/child.h"
#include "tests/trainer/train/deferred_backend.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/core/error.h"
#include "trainer/train/evaluation/evaluate.h"

namespace trainer {
namespace {

constexpr int kBatches = 4;  // of an evaluation: 64 images

// Six steps of 16 images, evaluated after 2, 4 and 6.
TrainConfig EvaluatingConfig(const fs::path& directory) {
  TrainConfig config = SmallConfig(directory);
  config.mode = RunMode::kTrainAndEvaluate;
  config.batch_size = 16;
  config.eval_every = 2;
  config.checkpoint_every = 0;
  return config;
}

struct EvaluatedRun {
  TrainResult result;
  std::string log;
};

EvaluatedRun RunEvaluating(const TrainConfig& config, int stop_after = 0,
                           const WriteHook& hook = {}, const std::string& backend = "reference") {
  OneRank alone;
  std::ostringstream log;
  TrainResult result = RunRank(config, alone, log, stop_after, backend, nullptr, {}, hook);
  return {std::move(result), log.str()};
}

int EvaluationsIn(const std::string& log) {
  int count = 0;
  const std::string line = "evaluation of 64 images";
  for (std::size_t at = log.find(line); at != std::string::npos; at = log.find(line, at + 1)) {
    ++count;
  }
  return count;
}

// Weights, momentum, statistics.
std::map<std::string, std::vector<float>> EndOf(const fs::path& directory, std::int64_t step = 6) {
  std::map<std::string, std::vector<float>> all;
  for (const char* file : {kModelFile, kOptimizerFile}) {
    for (auto& [name, values] : TensorsAt(directory, step, file)) {
      all[file + ("/" + name)] = values;
    }
  }
  return all;
}

// "6: 0.5", for each checkpoint of a run.
std::vector<std::string> Checkpointed(const fs::path& directory) {
  std::vector<std::string> found;
  for (const CheckpointPath& checkpoint : ListCheckpoints(directory)) {
    const std::optional<double> top1 = ReadCheckpoint(checkpoint.directory).manifest.state.top1;
    found.push_back(std::to_string(checkpoint.step) + ": " +
                    (top1 ? std::to_string(*top1) : std::string("not evaluated")));
  }
  return found;
}

class EvaluatingRun : public SmallRun {
 protected:
  EvaluatingRun() { config_ = EvaluatingConfig(directory_.path()); }
};

TEST_F(EvaluatingRun, OfATrainingChangeNotOneBitOfItOnEveryBackEnd) {
  for (const std::string& backend : BackendNames()) {
    if (!BackendProblem(backend).empty()) continue;
    SCOPED_TRACE(backend);
    const TemporaryDirectory with;
    const TemporaryDirectory without;
    TrainConfig config = EvaluatingConfig(with.path());
    EXPECT_EQ(EvaluationsIn(RunEvaluating(config, 0, {}, backend).log), 3);
    config.model_dir = without.path();
    config.eval_every = 0;
    EXPECT_EQ(EvaluationsIn(RunEvaluating(config, 0, {}, backend).log), 1);
    EXPECT_EQ(EndOf(with.path()), EndOf(without.path()));
  }
}

TEST_F(EvaluatingRun, OfATrainingOfTwoRanksChangeNotOneBitOfIt) {
  const TemporaryDirectory with;
  const TemporaryDirectory without;
  const auto run = [](const fs::path& directory, std::int64_t eval_every) {
    RunRanks(2, [&](Communicator& communicator) {
      TrainConfig config = EvaluatingConfig(directory);
      config.batch_size = 8;
      config.eval_every = eval_every;
      std::ostringstream log;
      const TrainResult result = RunRank(config, communicator, log);
      EXPECT_TRUE(result.evaluation.has_value());
    });
  };
  run(with.path(), 1);
  run(without.path(), 0);
  EXPECT_EQ(EndOf(with.path()), EndOf(without.path()));
}

// There the next batch of the training is on the device before the evaluation begins.
TEST_F(EvaluatingRun, OnADeviceLeaveTheNextBatchOfTheTrainingAlone) {
  const auto trained = [](std::int64_t eval_every) {
    const TemporaryDirectory directory;
    TrainConfig config = EvaluatingConfig(directory.path());
    config.eval_every = eval_every;
    PromptBackend backend;
    GeneratedSource training({.batch = config.batch_size});
    GeneratedSource evaluation({.batch = config.batch_size, .training = false});
    OneRank alone;
    std::ostringstream log;
    RunTrainer(config, {.backend = backend,
                        .communicator = alone,
                        .training = &training,
                        .evaluation = &evaluation,
                        .outputs = {MakeLogger(log, 0, "info")}});
    EXPECT_EQ(EvaluationsIn(log.str()), eval_every == 0 ? 1 : 6);
    return EndOf(directory.path());
  };
  EXPECT_EQ(trained(1), trained(0));
}

TEST_F(EvaluatingRun, AreCountedInEpochsOrSteps) {
  config_.schedule.iter_unit = IterationUnit::kEpoch;
  config_.schedule.num_iter = 3;  // epochs of 4 steps
  config_.eval_every = 2;
  const EvaluatedRun run = RunEvaluating(config_);
  EXPECT_EQ(run.result.step, 12);
  EXPECT_EQ(EvaluationsIn(run.log), 2);
  EXPECT_TRUE(fs::exists(CheckpointDirectory(directory_.path(), 8)));  // the best so far
}

// Two steps, then three batches of the evaluation.
TEST_F(EvaluatingRun, AreBrokenOffByAStopAndDoneByTheNextLaunch) {
  const TemporaryDirectory directory;
  const TemporaryDirectory straight;
  const TrainConfig config = EvaluatingConfig(directory.path());
  const EvaluatedRun first = RunEvaluating(config, /*stop_after=*/2 + 3);
  EXPECT_EQ(first.result.ending, Ending::kStopped);
  EXPECT_EQ(first.result.step, 2);
  EXPECT_EQ(EvaluationsIn(first.log), 0);
  EXPECT_FALSE(ReadManifest(CheckpointDirectory(directory.path(), 2)).state.top1.has_value());

  const EvaluatedRun second = RunEvaluating(config);
  EXPECT_EQ(second.result.step, 6);
  EXPECT_EQ(EvaluationsIn(second.log), 3);
  EXPECT_EQ(EvaluationsIn(RunEvaluating(EvaluatingConfig(straight.path())).log), 3);
  EXPECT_EQ(EndOf(directory.path()), EndOf(straight.path()));
  EXPECT_EQ(Checkpointed(directory.path()), Checkpointed(straight.path()));
}

// A run that ends with 75 has a checkpoint.
TEST_F(EvaluatingRun, ThatAreBrokenOffHideNoCheckpointThatCouldNotBeWritten) {
  config_.checkpoint_every = 2;
  const WriteHook hook = [](std::string_view call) {
    if (call == "rename") throw Error(EX_OSERR, "no room");
  };
  EXPECT_THROW(RunEvaluating(config_, /*stop_after=*/2 + 3, hook), Error);
}

TEST_F(EvaluatingRun, AreNotRepeatedByTheNextLaunch) {
  config_.schedule.run_iter = 2;
  EXPECT_EQ(EvaluationsIn(RunEvaluating(config_).log), 1);
  EXPECT_EQ(EvaluationsIn(RunEvaluating(config_).log), 1);  // of step 4
  // A stop that comes with the step leaves its evaluation to the next launch too.
  config_.schedule.run_iter = -1;
  config_.model_dir = directory_.path() / "stopped";
  EXPECT_EQ(EvaluationsIn(RunEvaluating(config_, /*stop_after=*/2).log), 0);
  EXPECT_EQ(EvaluationsIn(RunEvaluating(config_).log), 3);
}

// As in the trainer whose options these are: scripts that start it again and again read a curve.
TEST_F(EvaluatingRun, EndEveryLaunchThatDidWhatItWasAskedFor) {
  config_.eval_every = 0;
  config_.export_dir = directory_.path();
  config_.schedule.run_iter = 3;
  const EvaluatedRun first = RunEvaluating(config_);
  EXPECT_EQ(EvaluationsIn(first.log), 1);
  EXPECT_FALSE(first.result.evaluation.has_value());  // of the whole training
  EXPECT_THAT(first.log, HasSubstr("weights written: "));
  const auto of_step_3 = TensorsOf(ExportFile(config_));
  EXPECT_EQ(of_step_3, TensorsAt(directory_.path(), 3, kModelFile));
  EXPECT_THAT(Checkpointed(directory_.path()), ElementsAre(StartsWith("3: 0.")));

  const EvaluatedRun stopped = RunEvaluating(config_, /*stop_after=*/1);
  EXPECT_EQ(EvaluationsIn(stopped.log), 0);
  EXPECT_EQ(TensorsOf(ExportFile(config_)), of_step_3);

  const EvaluatedRun last = RunEvaluating(config_);
  EXPECT_EQ(EvaluationsIn(last.log), 1);
  EXPECT_TRUE(last.result.evaluation.has_value());
  EXPECT_NE(TensorsOf(ExportFile(config_)), of_step_3);
}

TEST_F(EvaluatingRun, KeepTheBestBesideTheNewest) {
  config_.eval_every = 1;
  config_.keep_checkpoints = 1;
  config_.checkpoint_every = 1;
  config_.schedule.num_iter = 8;
  RunEvaluating(config_);
  // What each step's evaluation finds, by a run that keeps all.
  config_.model_dir = directory_.path() / "all";
  config_.keep_checkpoints = 100;
  RunEvaluating(config_);
  const auto all = ListEvaluated(config_.model_dir).known;
  ASSERT_EQ(all.size(), 8U);
  const std::int64_t best = BestOf(all)->step;
  std::vector<std::int64_t> kept;
  for (const CheckpointPath& checkpoint : ListCheckpoints(directory_.path())) {
    kept.push_back(checkpoint.step);
  }
  EXPECT_EQ(kept, best == 8 ? std::vector<std::int64_t>{8} : std::vector<std::int64_t>({8, best}));
}

// Killed before it makes and before it renames each file and each checkpoint.
TEST_F(EvaluatingRun, EndAsInOneGoAfterAKillAtAnyTime) {
  for (const std::int64_t checkpoint_every : {2, 3}) {
    const TemporaryDirectory whole;
    TrainConfig config = EvaluatingConfig(whole.path());
    config.checkpoint_every = checkpoint_every;
    config.keep_checkpoints = 1;
    std::vector<std::string> calls;
    RunEvaluating(config, 0, [&](std::string_view call) { calls.emplace_back(call); });
    int kills = 0;
    for (std::size_t fatal = 0; fatal < calls.size(); ++fatal) {
      if (calls[fatal] != "rename" && calls[fatal] != "mkdir") continue;
      SCOPED_TRACE(calls[fatal] + ", number " + std::to_string(fatal));
      const TemporaryDirectory directory;
      config.model_dir = directory.path();
      const int status = RunInChild([&] {
        std::size_t number = 0;
        RunEvaluating(config, 0, [&](std::string_view) {
          if (number++ == fatal) std::raise(SIGKILL);
        });
      });
      ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
      EXPECT_TRUE(RunEvaluating(config).result.evaluation.has_value());
      EXPECT_EQ(EndOf(directory.path()), EndOf(whole.path()));
      EXPECT_EQ(Checkpointed(directory.path()), Checkpointed(whole.path()));
      ++kills;
    }
    EXPECT_GE(kills, 6);
  }
}

TEST_F(EvaluatingRun, EndTheTrainingOnceTheTargetIsReached) {
  config_.stop_at_top1 = 1;  // chance is 25
  config_.export_dir = directory_.path();
  const EvaluatedRun run = RunEvaluating(config_);
  EXPECT_EQ(run.result.ending, Ending::kCompleted);
  EXPECT_EQ(run.result.step, 2);
  EXPECT_TRUE(run.result.evaluation.has_value());
  EXPECT_EQ(EvaluationsIn(run.log), 1);
  EXPECT_TRUE(fs::exists(ExportFile(config_)));
  EXPECT_THAT(run.log, AllOf(HasSubstr("the best so far: the checkpoint of step 2, with top-1 "),
                             HasSubstr("training is complete: top-1 is "),
                             HasSubstr("% after step 2, as --stop_at_top1=1 asks for")));

  const EvaluatedRun again = RunEvaluating(config_);
  EXPECT_EQ(again.result.ending, Ending::kCompleted);
  EXPECT_EQ(again.result.step, 2);
  EXPECT_EQ(EvaluationsIn(again.log), 0);
  EXPECT_THAT(again.log, HasSubstr("training is complete: top-1 is "));
  config_.stop_at_top1 = 0;
  EXPECT_EQ(RunEvaluating(config_).result.step, 6);
}

TEST_F(EvaluatingRun, LeaveATrainingAloneThatDoesNotReachItsTarget) {
  config_.schedule.lr_init = 0;
  config_.stop_at_top1 = 100;
  const EvaluatedRun run = RunEvaluating(config_);
  EXPECT_EQ(run.result.step, 6);
  EXPECT_EQ(EvaluationsIn(run.log), 3);
  EXPECT_THAT(run.log, Not(HasSubstr("training is complete")));
}

class EvaluationsOfNoRun : public testing::Test {
 protected:
  Evaluations Make(std::int64_t first = 0) {
    return {config_, alone_, MakeSchedule(config_.schedule, 64, {16, 1}).From({first, 16 * first})};
  }
  const TemporaryDirectory directory_;
  TrainConfig config_ = EvaluatingConfig(directory_.path());
  OneRank alone_;
};

TEST_F(EvaluationsOfNoRun, AreDueUpToTheEndOfTheTraining) {
  const Evaluations evaluations = Make();
  std::string due;
  for (std::int64_t step = 0; step <= 7; ++step) due += evaluations.IsDue(step) ? "x" : ".";
  EXPECT_EQ(due, "..x.x...");
  EXPECT_FALSE(evaluations.IsOverdue());
  EXPECT_TRUE(Make(4).IsOverdue());
  EXPECT_FALSE(Make(3).IsOverdue());
  config_.eval_every = 0;
  EXPECT_FALSE(Make().IsDue(2));
}

TEST_F(EvaluationsOfNoRun, OnlyWhatIsBetterIsTheBest) {
  Evaluations evaluations = Make();
  EXPECT_TRUE(evaluations.Add(0));
  EXPECT_TRUE(evaluations.Add(0.5));
  EXPECT_FALSE(evaluations.Add(0.5));
  EXPECT_FALSE(evaluations.Add(0.25));
  EXPECT_TRUE(evaluations.Add(0.75));
}

TEST_F(EvaluationsOfNoRun, ATargetIsInPercentAndReachedWhereItIsEqualled) {
  EXPECT_FALSE(Make().ReachesTarget(1));
  config_.stop_at_top1 = 25;
  EXPECT_TRUE(Make().ReachesTarget(0.25));
  EXPECT_FALSE(Make().ReachesTarget(0.2499));
  EXPECT_FALSE(Make().ReachesTarget(-1));
  // What the logs show as that percentage, whatever doubles make of it.
  for (int percent = 1; percent <= 100; ++percent) {
    config_.stop_at_top1 = percent;
    EXPECT_TRUE(Make().ReachesTarget(percent / 100.0)) << percent;
  }
}

}  // namespace
}  // namespace trainer
