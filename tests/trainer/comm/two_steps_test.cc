// SPDX-License-Identifier: Apache-2.0
//
// Two steps under way (trainer/train/step/queue_ahead.h), on emulated GPUs, of one rank and of two
// that sum by the emulated NCCL: whatever happens to a step, everything is as without it, that is
// with --graph=off.  The emulated GPU runs what is queued at once, so that the second step is over
// before the host has seen the first, or as late as it may, so that the host has gone on before.

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/test.h"
#include "tests/trainer/backend/cuda_emulator/emulated_libraries.h"
#include "tests/trainer/comm/emulated_gpus.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/checkpoint/reader.h"
#include "trainer/comm/nccl_communicator.h"
#include "trainer/core/error.h"
#include "trainer/train/step/gradients.h"
#include "trainer/train/step/training_step.h"

namespace trainer {
namespace {

using ::testing::ElementsAreArray;

constexpr std::int64_t kSteps = 12;

enum class Gpu : std::uint8_t { kAtOnce, kLate };

// What happens to a training.
struct Scenario {
  const char* name = "";
  std::function<void(TrainConfig&)> change = [](TrainConfig&) {};
  std::set<std::int64_t> spoilt = {};  // batches of the run: one value of a convolution is NaN
  std::int64_t missing = -1;           // the batch that rank 0 cannot read
  DType type = DType::kFloat32;
  int stop_after = 0;  // how often it is asked whether to stop before it is
  int launches = 1;    // each but the last makes 7 steps
};

// How one ended, on rank 0.
struct Ended {
  std::string error;
  std::int64_t step = -1;
  std::map<std::string, Tensors> saved;  // by the directory of the checkpoint and the file
  std::set<std::int64_t> ahead;          // steps that were queued before their turn
};

// Spoils the steps of some batches, and has none for another.  What is spoilt is the convolution
// that is computed next: a GPU that runs at once computes what is queued next, and once more where
// it is queued again; one that is late is at the batch before.
class BadSource final : public GeneratedSource {
 public:
  BadSource(const GeneratedSourceOptions& options, const Scenario& scenario, bool is_late)
      : GeneratedSource(options),
        bad_(options.rank == 0 ? scenario.spoilt : std::set<std::int64_t>()),
        spoilt_(bad_),
        missing_(options.rank == 0 ? scenario.missing : -1),
        is_late_(is_late) {}

  bool Next(HostBatch& batch) override {
    GeneratedSource::Next(batch);
    last_ = batch.step;
    if (batch.step == missing_) throw Error(EX_DATAERR, "x: a bad record");
    if (spoilt_.erase(batch.step - (is_late_ ? 1 : 0)) > 0) cuda_emulator::SpoilForward(1);
    return true;
  }

  // A step is over; the last batch is of the next one.
  void AfterStep() {
    const bool is_queued_again = !is_late_ && bad_.contains(last_ - 1);
    const bool is_end = is_late_ && last_ == kSteps - 1;
    if (bad_.contains(last_) && (is_queued_again || is_end)) cuda_emulator::SpoilForward(1);
  }

 private:
  const std::set<std::int64_t> bad_;
  std::set<std::int64_t> spoilt_;  // still to be
  const std::int64_t missing_;
  const bool is_late_;
  std::int64_t last_ = -1;
};

void KeepSaved(const fs::path& model_dir, Ended& ended) {
  for (const CheckpointPath& checkpoint : ListCheckpoints(model_dir)) {
    for (const auto& file : fs::directory_iterator(checkpoint.directory)) {
      if (file.path().extension() != ".safetensors") continue;
      const fs::path name = checkpoint.directory.filename() / file.path().filename();
      ended.saved[name.string()] = TensorsOf(file.path());
    }
  }
}

void TrainRank(const Scenario& scenario, const TrainConfig& config, bool is_late, Backend& backend,
               Communicator& communicator, Ended& ended) {
  GeneratedSourceOptions options;
  options.accumulate = config.accumulate;
  options.rank = communicator.rank();
  options.ranks = communicator.size();
  BadSource training(options, scenario, is_late);
  options.training = false;
  GeneratedSource evaluation(options);
  std::ostringstream log;
  int requested = 0;
  const int before = cuda_emulator::GraphLaunches();
  TrainerDeps deps{backend,
                   communicator,
                   &training,
                   &evaluation,
                   {MakeLogger(log, communicator.rank(), "info")},
                   [&] { return ++requested == scenario.stop_after; }};
  // Called once in a step, before the ranks tell each other what it has found.
  deps.device_state = [&] {
    training.AfterStep();
    return DeviceState();
  };
  // Each batch but those of the first step is one graph.
  deps.entered = [&](Activity activity, std::int64_t step) {
    const std::int64_t in_turn = std::max<std::int64_t>(step - 1, 0) * config.accumulate;
    if (activity != Activity::kTraining) return;
    if (cuda_emulator::GraphLaunches() - before > in_turn) ended.ahead.insert(step);
  };
  cuda_emulator::RunGraphsLate(is_late);
  try {
    ended.step = RunTrainer(config, deps).step;
  } catch (const Error& error) {
    ended.error = std::to_string(error.exit_code()) + " " + error.what();
  }
  cuda_emulator::RunGraphsLate(false);
}

Ended Train(const Scenario& scenario, StepGraph graph, Gpu gpu, int ranks) {
  const TemporaryDirectory directory;
  TrainConfig config = SmallConfig(directory.path());
  config.graph = graph;
  config.schedule.num_iter = kSteps;
  config.schedule.lr_init = 0.02;
  config.checkpoint_every = 5;
  config.keep_checkpoints = 100;
  config.use_static_loss_scaling = true;
  config.loss_scale = 64;
  scenario.change(config);
  const bool is_late = gpu == Gpu::kLate && graph != StepGraph::kOff;
  std::vector<Ended> ended(static_cast<std::size_t>(ranks));
  UseEmulatedStreams();
  for (int launch = 1; launch <= scenario.launches; ++launch) {
    config.schedule.run_iter = launch < scenario.launches ? 7 : -1;
    RunRanks(ranks, [&](Communicator& host) {
      const auto backend =
          MakeBackend("cuda", {.threads = 1, .compute_type = scenario.type, .deterministic = true});
      std::unique_ptr<Communicator> sums;
      if (ranks > 1) sums = MakeNcclCommunicator(host, MakeNcclDeps(*backend), {});
      TrainRank(scenario, config, is_late, *backend, sums ? *sums : host,
                ended[static_cast<std::size_t>(host.rank())]);
    });
    nccl_emulator::TakeEnds(ranks > 1 ? ranks : 0);
  }
  cuda_emulator::SpoilForward(0);
  for (const Ended& other : ended) EXPECT_EQ(other.ahead, ended[0].ahead);
  KeepSaved(directory.path(), ended[0]);
  return ended[0];
}

class TwoSteps : public testing::TestWithParam<int> {
 protected:
  // Returns how it ended with graphs, which is as without.
  static Ended ExpectNoDifference(const Scenario& scenario) {
    SCOPED_TRACE(scenario.name);
    const int ranks = GetParam();
    const Ended expected = Train(scenario, StepGraph::kOff, Gpu::kAtOnce, ranks);
    EXPECT_FALSE(expected.saved.empty());
    EXPECT_EQ(expected.ahead, std::set<std::int64_t>());
    const Ended ended = Train(scenario, StepGraph::kOn, Gpu::kAtOnce, ranks);
    const Ended late = Train(scenario, StepGraph::kOn, Gpu::kLate, ranks);
    EXPECT_EQ(late.ahead, ended.ahead);
    for (const Ended* other : {&ended, &late}) {
      EXPECT_EQ(other->error, expected.error);
      EXPECT_EQ(other->step, expected.step);
      EXPECT_TRUE(other->saved == expected.saved) << (other == &late ? "late" : "at once");
    }
    return ended;
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, TwoSteps, testing::Values(1, 2));

// Steps 0 to 2 find out that there are graphs, and record one for each place of a batch; steps 5
// and 10 follow a checkpoint.
TEST_P(TwoSteps, AreUnderWayWhereNothingIsBetween) {
  EXPECT_THAT(ExpectNoDifference({"good"}).ahead, ElementsAreArray({3, 4, 6, 7, 8, 9, 11}));
  const auto with = [](const char* name, std::function<void(TrainConfig&)> change) {
    return Scenario{.name = name, .change = std::move(change)};
  };
  const std::set<std::int64_t> all = {3, 4, 5, 6, 7, 8, 9, 10, 11};
  const auto without = [&](std::set<std::int64_t> taken) {
    std::set<std::int64_t> left = all;
    for (const std::int64_t step : taken) left.erase(step);
    return left;
  };
  const auto never = [](TrainConfig& config) { config.checkpoint_every = 0; };
  EXPECT_EQ(ExpectNoDifference(with("no checkpoints", never)).ahead, all);
  EXPECT_EQ(ExpectNoDifference(with("evaluations",
                                    [&](TrainConfig& config) {
                                      never(config);
                                      config.mode = RunMode::kTrainAndEvaluate;
                                      config.eval_every = 4;
                                    }))
                .ahead,
            without({4, 8}));
  EXPECT_EQ(ExpectNoDifference(with("EMA, LARS, mixup",
                                    [&](TrainConfig& config) {
                                      config.ema = 0.5;
                                      config.mixup = 0.4;
                                      config.optimizer = OptimizerKind::kLars;
                                    }))
                .ahead,
            without({5, 10}));
  EXPECT_EQ(ExpectNoDifference(
                with("several batches", [&](TrainConfig& config) { config.accumulate = 2; }))
                .ahead,
            std::set<std::int64_t>());
}

// The batch after it is computed with the weights as they were, and so are its statistics.
TEST_P(TwoSteps, OneThatIsLeftOutLeavesNoTrace) {
  const auto skips = [](TrainConfig& config) {
    config.on_nan = OnNan::kSkip;
    config.ema = 0.5;
    config.checkpoint_every = 8;
  };
  // Step 7 is queued twice: from there on there was one graph more than steps, behind a checkpoint
  // too.
  EXPECT_THAT(ExpectNoDifference({.name = "6", .change = skips, .spoilt = {6}}).ahead,
              ElementsAreArray({3, 4, 5, 6, 7, 8, 9, 10, 11}));
  ExpectNoDifference({.name = "6 and 7", .change = skips, .spoilt = {6, 7}});
  if (GetParam() == 1) ExpectNoDifference({.name = "end", .change = skips, .spoilt = {kSteps - 1}});
}

TEST_P(TwoSteps, OneThatOverflowsLowersTheLossScaleOfTheNext) {
  const auto overflows = [](TrainConfig& config) {
    config.use_static_loss_scaling = false;
    config.loss_scale = 16777216;
    config.checkpoint_every = 7;
    config.schedule.num_iter = 24;
  };
  const Ended ended = ExpectNoDifference(
      {.name = "fp16", .change = overflows, .spoilt = {}, .type = DType::kFloat16});
  EXPECT_GT(ended.ahead.size(), 3);
}

TEST_P(TwoSteps, OneThatIsNanEndsTheRunOrRollsItBack) {
  const auto rolls_back = [](TrainConfig& config) {
    config.on_nan = OnNan::kRollback;
    config.ema = 0.5;
  };
  ExpectNoDifference({.name = "rollback from 7", .change = rolls_back, .spoilt = {7}});
  ExpectNoDifference({.name = "rollback from 8 and 3", .change = rolls_back, .spoilt = {8, 3}});
  const Ended ended = ExpectNoDifference({.name = "stop", .spoilt = {7}});
  EXPECT_THAT(ended.error, StartsWith("70 step 7: the loss is nan"));
}

TEST_P(TwoSteps, OneWithoutItsBatchEndsTheRunWithTheWeightsBeforeIt) {
  for (const std::int64_t missing : {3, 8}) {
    const Ended ended = ExpectNoDifference({.name = "no batch", .missing = missing});
    EXPECT_THAT(ended.error, AllOf(StartsWith("65 x: a bad record"),
                                   HasSubstr("of step " + std::to_string(missing))));
  }
}

TEST_P(TwoSteps, OneThatIsReplayedHasNoneBesideIt) {
  const Ended ended = ExpectNoDifference(
      {.name = "replay", .change = [](TrainConfig& config) { config.replay_check = 6; }});
  EXPECT_EQ(ended.error, "");
}

TEST_P(TwoSteps, AreTheSameWithAResumeInBetween) {
  const Ended resumed = ExpectNoDifference({.name = "resumed", .launches = 2});
  const Ended whole = Train({}, StepGraph::kOn, Gpu::kAtOnce, GetParam());
  EXPECT_GE(whole.saved.size(), 6);  // model and optimizer after 5, 10 and 12 steps
  for (const auto& [name, tensors] : whole.saved) {
    EXPECT_TRUE(tensors == resumed.saved.at(name)) << name;
  }
}

// A request waits for the step that is queued by then, and what is saved is that one's.
TEST_P(TwoSteps, AreBothDoneBeforeOneIsStopped) {
  for (const int stop_after : {2, 7, 12}) {
    SCOPED_TRACE(stop_after);
    Scenario scenario = {.name = "stop"};
    scenario.change = [](TrainConfig& config) { config.checkpoint_every = 0; };
    scenario.stop_after = stop_after;
    const Ended stopped = Train(scenario, StepGraph::kOn, Gpu::kAtOnce, GetParam());
    const bool is_one_queued = stop_after > 2 && stop_after < kSteps;
    EXPECT_EQ(stopped.step, stop_after + (is_one_queued ? 1 : 0));
    scenario.stop_after = static_cast<int>(stopped.step);
    const Ended expected = Train(scenario, StepGraph::kOff, Gpu::kAtOnce, GetParam());
    EXPECT_EQ(stopped.step, expected.step);
    EXPECT_FALSE(expected.saved.empty());
    EXPECT_TRUE(stopped.saved == expected.saved);
  }
}

// One of two ranks whose sums are what they were.  Notes how many graphs were started when the host
// begins to wait for a step; the n-th time that a step's sums run takes n seconds.
class NotingRank final : public OneRank {
 public:
  int size() const override { return 2; }
  bool reduces_device_memory() const override { return true; }
  void StartAllReduce(void*, std::size_t, DType, Reduction, Stream&) override {}
  void Finish(Stream& consumer) override {
    cuda_emulator::QueueWork(static_cast<cudaStream_t>(consumer.handle()), [this] {
      cuda_emulator::PassTime(std::chrono::seconds(++steps_run));
    });
  }
  void Synchronize(Stream& stream) override {
    launches.push_back(cuda_emulator::GraphLaunches() - before_);
    OneRank::Synchronize(stream);
  }

  int steps_run = 0;
  std::vector<int> launches;

 private:
  const int before_ = cuda_emulator::GraphLaunches();
};

class TimesOfTwoSteps : public testing::TestWithParam<Gpu> {
 protected:
  TimesOfTwoSteps() { spans_.Start(); }
  ~TimesOfTwoSteps() override { cuda_emulator::RunGraphsLate(false); }

  static constexpr int kRun = 7;
  const std::unique_ptr<Backend> backend_ = MakeBackend("cuda", {.threads = 1});
  const TrainConfig config_ = SmallConfig("");
  const NetworkSpec spec_{config_.arch,       config_.batch_size, config_.image_size,
                          config_.image_size, config_.classes,    0};
  const std::unique_ptr<Stream> stream_ = backend_->MakeStream();
  Network network_{*backend_, spec_};
  DeviceBatch device_batch_{*backend_, spec_};
  GeneratedSource source_{{}};
  LossScale loss_scale_ = LossScale::Static(1);
  NotingRank communicator_;
  SpanRecorder spans_{1000};
  TrainingStep step_{{.config = config_,
                      .backend = *backend_,
                      .network = network_,
                      .device_batch = device_batch_,
                      .communicator = communicator_,
                      .stream = *stream_,
                      .loss_scale = loss_scale_,
                      .source = source_,
                      .end = kRun,
                      .spans = &spans_}};
};
INSTANTIATE_TEST_SUITE_P(Gpu, TimesOfTwoSteps, testing::Values(Gpu::kAtOnce, Gpu::kLate));

// A step that was queued ahead takes from the end of the one before, whatever the host does
// meanwhile; its phases are its own.
TEST_P(TimesOfTwoSteps, AreThoseOfTheClock) {
  constexpr std::chrono::milliseconds kBetween{30};
  const bool is_late = GetParam() == Gpu::kLate;
  cuda_emulator::RunGraphsLate(is_late);
  std::vector<std::size_t> ahead;
  for (int i = 0; i < kRun; ++i) {
    const bool was_queued = step_.has_next();
    if (was_queued) ahead.push_back(static_cast<std::size_t>(i));
    std::optional<double> next_rate = 0.1;
    if (i == 4 || i + 1 == kRun) next_rate.reset();
    const StepTimes times = step_.Run(i, 0.1, {}, next_rate).record.times;
    EXPECT_EQ(communicator_.steps_run, i + 1 + (step_.has_next() && !is_late ? 1 : 0));
    EXPECT_NEAR(times[StepPhase::kExposedAllReduce], i + 1.5, 0.5) << i;
    EXPECT_GE(times.step, was_queued ? std::chrono::duration<double>(kBetween).count() : 0) << i;
    std::this_thread::sleep_for(kBetween);
  }
  EXPECT_THAT(ahead, ElementsAreArray({3, 4, 6}));
  EXPECT_THAT(communicator_.launches, ElementsAreArray({0, 1, 3, 4, 4, 6, 6}));
  std::vector<double> begins;
  std::vector<double> ends;
  for (const Span& span : spans_.Spans()) {
    if (span.kind != SpanKind::kStep) continue;
    begins.push_back(span.begin);
    ends.push_back(span.end);
  }
  ASSERT_EQ(ends.size(), kRun);
  for (std::size_t i = 1; i < kRun; ++i) {
    EXPECT_EQ(begins[i] == ends[i - 1], i == 3 || i == 4 || i == 6) << i;
  }
}

}  // namespace
}  // namespace trainer
