// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong on one rank while the weights are sound ends a training with a checkpoint of its
// last whole step.

#include <mutex>

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// Cannot give its batch number `bad_batch`, from 0.
class FailingSource final : public DataLoader {
 public:
  FailingSource(const GeneratedSourceOptions& options, std::int64_t bad_batch, int exit_code)
      : source_(options), bad_batch_(bad_batch), exit_code_(exit_code) {}

  std::int64_t samples() const override { return source_.samples(); }
  void Seek(const Position& position) override {
    taken_ = 0;
    source_.Seek(position);
  }
  bool Next(HostBatch& batch) override {
    if (taken_ == bad_batch_) {
      if (exit_code_ == 0) throw std::bad_alloc();
      throw Error(exit_code_, "x: a bad record");
    }
    ++taken_;
    return source_.Next(batch);
  }

 private:
  GeneratedSource source_;
  const std::int64_t bad_batch_;
  const int exit_code_;
  std::int64_t taken_ = 0;
};

struct FaultCase {
  const char* name;
  int ranks = 1;
  int bad_rank = 0;
  std::int64_t accumulate = 1;
  std::int64_t bad_batch = 3;  // of this rank
  std::int64_t step = 3;       // whole ones before it
  std::int64_t checkpoint_every = 1000;
  OnNan on_nan = OnNan::kStop;
  double ema = 0;
  bool is_of_evaluation = false;
  int exit_code = EX_DATAERR;  // 0: memory is short
  std::int64_t replay_check = 0;
};

struct FaultEnd {
  int exit_code = 0;
  bool is_own = false;
  std::string message;
};

std::vector<FaultEnd> RunWithFault(const FaultCase& of, const TrainConfig& config,
                                   const std::string& backend_name) {
  std::vector<FaultEnd> ends(static_cast<std::size_t>(of.ranks));
  RunRanks(of.ranks, [&](Communicator& communicator) {
    GeneratedSourceOptions options;
    options.batch = config.batch_size;
    options.accumulate = config.accumulate;
    options.classes = config.classes;
    options.rank = communicator.rank();
    options.ranks = of.ranks;
    const bool is_bad = communicator.rank() == of.bad_rank;
    const auto bad_batch = [&](bool is_of_evaluation) {
      return is_bad && of.is_of_evaluation == is_of_evaluation ? of.bad_batch : -1;
    };
    FailingSource training(options, bad_batch(false), of.exit_code);
    options.training = false;
    FailingSource evaluation(options, bad_batch(true), of.exit_code);
    std::ostringstream log;
    const auto backend = MakeBackend(backend_name, {.threads = 1});
    TrainerDeps deps{*backend,
                     communicator,
                     &training,
                     &evaluation,
                     {MakeLogger(log, communicator.rank(), "info")}};
    FaultEnd& end = ends[static_cast<std::size_t>(communicator.rank())];
    try {
      RunTrainer(config, deps);
    } catch (const RankFault& fault) {
      end = {fault.exit_code(), fault.whose() == RankFault::Whose::kOwn, fault.what()};
    }
  });
  return ends;
}

class RankFaults : public testing::TestWithParam<FaultCase> {};

TEST_P(RankFaults, EndWithACheckpointOfTheLastWholeStepOnEachBackEnd) {
  const FaultCase& of = GetParam();
  for (const std::string backend : {"reference", "cpu"}) {
    const TemporaryDirectory whole;
    const TemporaryDirectory faulty;
    TrainConfig config = SmallConfig(whole.path());
    config.schedule.num_iter = 9;
    config.accumulate = of.accumulate;
    config.checkpoint_every = of.checkpoint_every;
    config.on_nan = of.on_nan;
    config.ema = of.ema;
    config.schedule.lr_init = 0.1;
    config.schedule.run_iter = of.step;
    RunRanks(of.ranks, [&](Communicator& communicator) {
      std::ostringstream log;
      RunRank(config, communicator, log, 0, backend);
    });

    config.replay_check = of.replay_check;
    config.model_dir = faulty.path();
    config.schedule.run_iter = -1;
    if (of.is_of_evaluation) {
      config.mode = RunMode::kTrainAndEvaluate;
      config.eval_every = of.step;
    }
    const std::vector<FaultEnd> ends = RunWithFault(of, config, backend);
    for (int rank = 0; rank < of.ranks; ++rank) {
      const FaultEnd& end = ends[static_cast<std::size_t>(rank)];
      EXPECT_EQ(end.exit_code, of.exit_code == 0 ? EX_OSERR : of.exit_code);
      EXPECT_EQ(end.is_own, rank == of.bad_rank);
      const std::string what = rank != of.bad_rank
                                   ? "rank " + std::to_string(of.bad_rank) + " has no images"
                               : of.exit_code == 0 ? "out of memory for a batch"
                                                   : "x: a bad record";
      const bool is_new = of.step % of.checkpoint_every != 0;
      const std::string saved = "; the weights of step " + std::to_string(of.step) + " were saved";
      EXPECT_THAT(end.message, StartsWith(what));
      EXPECT_EQ(end.message.ends_with(saved), is_new) << end.message;
    }
    ASSERT_TRUE(fs::exists(CheckpointDirectory(faulty.path(), of.step))) << backend;
    for (const char* file : {kModelFile, kOptimizerFile, kAverageFile}) {
      if (of.ema == 0 && file == kAverageFile) continue;
      EXPECT_EQ(TensorsAt(faulty.path(), of.step, file), TensorsAt(whole.path(), of.step, file))
          << backend << ' ' << file;
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(faulty.path() / "checkpoints"),
                            fs::directory_iterator()),
              1);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RankFaults,
    testing::Values(
        FaultCase{.name = "OneRank"}, FaultCase{.name = "SecondOfTwo", .ranks = 2, .bad_rank = 1},
        FaultCase{.name = "FirstOfTwo", .ranks = 2},
        FaultCase{.name = "CannotRead", .ranks = 2, .bad_rank = 1, .exit_code = EX_OSERR},
        FaultCase{.name = "LacksMemory", .ranks = 2, .exit_code = 0},
        FaultCase{.name = "MiddleOfThree", .ranks = 3, .bad_rank = 1, .ema = 0.9},
        FaultCase{.name = "SecondBatchOfAStep",
                  .ranks = 2,
                  .bad_rank = 1,
                  .accumulate = 2,
                  .bad_batch = 5,
                  .step = 2},
        FaultCase{
            .name = "FirstBatchOfAStep", .ranks = 2, .accumulate = 2, .bad_batch = 4, .step = 2},
        FaultCase{.name = "FirstBatchOfAStepThatIsReplayed",
                  .ranks = 2,
                  .accumulate = 2,
                  .bad_batch = 4,
                  .step = 2,
                  .replay_check = 3},
        FaultCase{.name = "AfterACheckpoint", .ranks = 2, .checkpoint_every = 3},
        FaultCase{
            .name = "WhereStepsAreSkipped", .ranks = 2, .bad_rank = 1, .on_nan = OnNan::kSkip},
        FaultCase{.name = "OfAnEvaluation",
                  .ranks = 2,
                  .bad_rank = 1,
                  .bad_batch = 2,
                  .ema = 0.9,
                  .is_of_evaluation = true},
        FaultCase{.name = "OfTheFirstBatchOfAnEvaluation",
                  .ranks = 2,
                  .bad_batch = 0,
                  .is_of_evaluation = true}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(RankFault, OfTheFirstStepLeavesNoCheckpoint) {
  const TemporaryDirectory directory;
  const FaultCase first = {.name = "", .ranks = 2, .bad_rank = 1, .bad_batch = 0};
  const auto ends = RunWithFault(first, SmallConfig(directory.path()), "reference");
  EXPECT_EQ(ends[1].message, "x: a bad record");
  EXPECT_FALSE(fs::exists(directory.path() / "checkpoints"));
}

TEST(RankFault, OfRollbackLeavesACheckpointToo) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.on_nan = OnNan::kRollback;
  RunWithFault({.name = "", .bad_batch = 3}, config, "reference");
  EXPECT_TRUE(fs::exists(CheckpointDirectory(directory.path(), 3)));
}

// What rank 0 alone does and cannot.
TEST(RankFault, AStateThatCannotBeDumpedEndsTheRunAfterTheNextStep) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.dump_state = directory.path() / "none" / "state";
  config.dump_state_step = 2;
  OneRank communicator;
  std::ostringstream log;
  const std::string message = tests::Rejection<Error>(
      EX_OSERR, [&] { RunRank(config, communicator, log); }, "not refused");
  EXPECT_THAT(message,
              AllOf(HasSubstr("none/state"), HasSubstr("; the weights of step 3 were saved")));
  EXPECT_TRUE(fs::exists(CheckpointDirectory(directory.path(), 3)));
}

}  // namespace
}  // namespace trainer
