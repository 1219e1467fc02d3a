// SPDX-License-Identifier: Apache-2.0
//
// Steps of several emulated GPUs that are recorded with the sums of the emulated NCCL in them.

#include <exception>
#include <thread>

#include "tests/support/test.h"
#include "tests/trainer/comm/emulated_gpus.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/comm/nccl_communicator.h"
#include "trainer/core/error.h"
#include "trainer/train/step/gradients.h"

namespace trainer {
namespace {

using nccl_emulator::Ends;
using ::testing::Field;

constexpr char kOneGraphEach[] = "training steps run as one graph each";

// Where a rank has something else than the others.
struct RecordedRun {
  TrainConfig config;
  int ranks = 2;
  std::function<void(int rank)> before = [](int) {};
  // Told how many steps are done, before each.
  std::function<void(int rank, std::int64_t step)> before_step = [](int, std::int64_t) {};
  int stop_after = 0;
};

// How a rank ended.
struct RankExit {
  std::int64_t step = -1;
  std::string error;  // of an Error: its exit code and text
  std::string log;
  friend std::ostream& operator<<(std::ostream& out, const RankExit& end) {
    return out << "step " << end.step << ", " << end.error << ", " << end.log;
  }
};

TrainConfig BenchmarkConfig() {
  TrainConfig config = SmallConfig("");
  config.mode = RunMode::kTrainingBenchmark;
  config.warmup_steps = 0;
  config.schedule.num_iter = 5;
  config.schedule.lr_init = 0.01;
  return config;
}

std::vector<RankExit> EndsOf(const RecordedRun& run) {
  UseEmulatedStreams();
  std::vector<RankExit> ends(static_cast<std::size_t>(run.ranks));
  RunRanks(run.ranks, [&](Communicator& host) {
    RankExit& end = ends[static_cast<std::size_t>(host.rank())];
    std::ostringstream log;
    run.before(host.rank());
    try {
      const auto backend = MakeBackend("cuda", {.threads = 1});
      const auto sums = MakeNcclCommunicator(host, MakeNcclDeps(*backend), {});
      end.step = RunRankOn(*backend, run.config, *sums, log, run.stop_after, nullptr,
                           [&](std::int64_t step) { run.before_step(host.rank(), step); })
                     .step;
    } catch (const Error& error) {
      end.error = std::to_string(error.exit_code()) + " " + error.what();
    }
    end.log = log.str();
    cuda_emulator::RejectThisThreadToRecord(false);  // another one may get its number
  });
  return ends;
}

class RecordedSums : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RecordedSums, testing::Values(2, 4));

// NCCL's thread adds a sum to the recording while the rank's own thread has something to add.
TEST_P(RecordedSums, AreAddedByOneThreadAtATime) {
  RecordedRun run = {.config = BenchmarkConfig(), .ranks = GetParam()};
  run.config.graph = StepGraph::kOn;
  EXPECT_THAT(EndsOf(run), Each(AllOf(Field(&RankExit::error, ""), Field(&RankExit::step, 5))));
  EXPECT_EQ(nccl_emulator::TakeEnds(), (Ends{.destroyed = GetParam(), .aborted = 0}));
}

TEST(RecordedSumsTest, AreAddedByOneThreadAtATimeOverSeveralBatches) {
  RecordedRun run = {.config = BenchmarkConfig()};
  run.config.graph = StepGraph::kOn;
  run.config.accumulate = 3;
  EXPECT_THAT(EndsOf(run), Each(Field(&RankExit::error, "")));
}

TEST(RecordedSumsTest, AreWhatSeveralRanksHaveUnlessTheyAreAskedNotTo) {
  RecordedRun run = {.config = BenchmarkConfig()};
  EXPECT_THAT(EndsOf(run)[0].log, HasSubstr(kOneGraphEach));
  run.config.graph = StepGraph::kOff;
  EXPECT_THAT(EndsOf(run)[0].log, Not(HasSubstr(kOneGraphEach)));
}

// NCCL wants a sum to be of a recording on all ranks or on none.
TEST(RecordedSumsTest, AreOfNoRankWhereOneCannotRecord) {
  for (const int rejected : {0, 1}) {
    RecordedRun run = {.config = BenchmarkConfig()};
    run.before = [&](int rank) { cuda_emulator::RejectThisThreadToRecord(rank == rejected); };
    const std::vector<RankExit> ends = EndsOf(run);
    EXPECT_THAT(ends,
                Each(AllOf(Field(&RankExit::error, ""), Field(&RankExit::step, 5),
                           Field(&RankExit::log, HasSubstr("kernels are started one by one")))));
    EXPECT_THAT(ends[1 - rejected].log,
                HasSubstr("rank " + std::to_string(rejected) + " cannot record"));

    run.config.graph = StepGraph::kOn;
    EXPECT_THAT(EndsOf(run), Each(Field(&RankExit::error, HasSubstr("record"))));
  }
}

// A recording holds NCCL's communicator, which has no end before it.
class EndOfARun : public testing::TestWithParam<StepGraph> {};
INSTANTIATE_TEST_SUITE_P(Graph, EndOfARun, testing::Values(StepGraph::kOff, StepGraph::kOn));

TEST_P(EndOfARun, IsInGoodOrderWhenItHasRunAndWhenItIsStopped) {
  for (const int stop_after : {0, 3}) {
    RecordedRun run = {.config = BenchmarkConfig(), .stop_after = stop_after};
    run.config.graph = GetParam();
    // With a graph the fourth step is queued when the third ends.
    const int stopped = GetParam() == StepGraph::kOn ? 4 : 3;
    EXPECT_THAT(EndsOf(run), Each(AllOf(Field(&RankExit::error, ""),
                                        Field(&RankExit::step, stop_after == 0 ? 5 : stopped))));
    EXPECT_EQ(nccl_emulator::TakeEnds(), (Ends{.destroyed = 2, .aborted = 0}));
  }
}

TEST_P(EndOfARun, IsInGoodOrderAfterATrainingWithEvaluations) {
  const TemporaryDirectory directory;
  RecordedRun run = {.config = BenchmarkConfig()};
  run.config.mode = RunMode::kTrainAndEvaluate;
  run.config.model_dir = directory.path();
  run.config.graph = GetParam();
  EXPECT_THAT(EndsOf(run), Each(Field(&RankExit::error, "")));
  EXPECT_EQ(nccl_emulator::TakeEnds(), (Ends{.destroyed = 2, .aborted = 0}));
}

TEST_P(EndOfARun, IsAnAbortOfAllWhereOneRankFails) {
  for (const int failing : {0, 1}) {
    RecordedRun run = {.config = BenchmarkConfig()};
    run.config.graph = GetParam();
    run.config.paranoid = 4;  // so that the last step is queued by none yet
    run.before_step = [&](int rank, std::int64_t step) {
      if (rank == failing && step == 4) throw Error(EX_DATAERR, "a bad record");
    };
    const std::vector<RankExit> ends = EndsOf(run);
    EXPECT_EQ(ends[failing].error, "65 a bad record");
    EXPECT_THAT(ends[1 - failing].error, HasSubstr("69 rank " + std::to_string(1 - failing) +
                                                   " cannot sum gradients: remote process"));
    EXPECT_EQ(nccl_emulator::TakeEnds(2), (Ends{.destroyed = 0, .aborted = 2}));
  }
}

TEST_P(EndOfARun, IsAnAbortOfAllWhereTheTrainingDiverges) {
  RecordedRun run = {.config = BenchmarkConfig()};
  run.config.graph = GetParam();
  run.config.schedule.lr_init = 1e30;
  EXPECT_THAT(EndsOf(run), Each(Field(&RankExit::error, Not(""))));
  EXPECT_EQ(nccl_emulator::TakeEnds(2), (Ends{.destroyed = 0, .aborted = 2}));
}

class ThrowingHost final : public ThreadCommunicator {
 public:
  using ThreadCommunicator::ThreadCommunicator;
  [[noreturn]] void Abort(int exit_code) override { throw exit_code; }
};

// Has no batch after `batches`.
class EndingSource final : public GeneratedSource {
 public:
  EndingSource(const GeneratedSourceOptions& options, int batches)
      : GeneratedSource(options), batches_(batches) {}
  bool Next(HostBatch& batch) override {
    if (batches_-- == 0) throw Error(EX_DATAERR, "a bad record");
    return GeneratedSource::Next(batch);
  }

 private:
  int batches_;
};

// No sum is under way where all ranks end together.
TEST_P(EndOfARun, IsInGoodOrderWhereOneRankHasNoBatch) {
  for (const int failing : {0, 1}) {
    UseEmulatedStreams();
    std::array<std::string, 2> errors;
    RunRanks(2, [&](Communicator& host) {
      const int rank = host.rank();
      const auto backend = MakeBackend("cuda", {.threads = 1});
      const auto sums = MakeNcclCommunicator(host, MakeNcclDeps(*backend), {});
      EndingSource source({.rank = rank, .ranks = 2}, rank == failing ? 4 : 100);
      std::ostringstream log;
      TrainerDeps deps = {.backend = *backend,
                          .communicator = *sums,
                          .training = &source,
                          .outputs = {.log = MakeLogger(log, rank, "info")}};
      deps.failed = [&](const std::exception& error) { ADD_FAILURE() << error.what(); };
      TrainConfig config = BenchmarkConfig();
      config.graph = GetParam();
      try {
        RunTrainer(config, deps);
      } catch (const RankFault& fault) {
        errors[static_cast<std::size_t>(rank)] = fault.what();
      }
    });
    EXPECT_EQ(errors[static_cast<std::size_t>(failing)], "a bad record");
    EXPECT_EQ(errors[static_cast<std::size_t>(1 - failing)],
              "rank " + std::to_string(failing) + " has no images to compute with");
    EXPECT_EQ(nccl_emulator::TakeEnds(2), (Ends{.destroyed = 2, .aborted = 0}));
  }
}

// Who is told of a failure aborts the communicator there and then: an abort has an end only if what
// was recorded is gone by then.
TEST(EndOfARunTest, HasGivenBackWhatWasRecordedBeforeItAborts) {
  UseEmulatedStreams();
  ThreadWorld world(2);
  int aborted_in_time = 0;  // by rank 1
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      ThrowingHost host(world, rank);
      const auto backend = MakeBackend("cuda", {.threads = 1});
      const auto sums = MakeNcclCommunicator(host, MakeNcclDeps(*backend), {});
      GeneratedSource source({.rank = rank, .ranks = 2});
      std::ostringstream log;
      TrainerDeps deps = {.backend = *backend,
                          .communicator = *sums,
                          .training = &source,
                          .outputs = {.log = MakeLogger(log, rank, "info")}};
      deps.failed = [&](const std::exception&) { sums->Abort(EX_DATAERR); };
      TrainConfig config = BenchmarkConfig();
      config.graph = StepGraph::kOn;
      config.schedule.lr_init = 1e30;
      try {
        RunTrainer(config, deps);
        ADD_FAILURE() << "has not diverged";
      } catch (int) {
        if (rank == 1) aborted_in_time = nccl_emulator::TakeEnds().aborted;
      }
    });
  }
  ranks.clear();
  EXPECT_GE(aborted_in_time, 1);
  // The other's abort may be under way still, and is not to be counted with the next test's.
  EXPECT_EQ(aborted_in_time + nccl_emulator::TakeEnds(2 - aborted_in_time).aborted, 2);
}

}  // namespace
}  // namespace trainer
