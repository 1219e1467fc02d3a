// SPDX-License-Identifier: Apache-2.0
//
// A few training steps on every back end and in every type of this build: the losses are those of
// the reference.

#include <numeric>

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/backend/device.h"
#include "tests/trainer/train/training_run.h"
#include "trainer/core/error.h"
#include "trainer/model/network.h"
#include "trainer/train/state/network_state.h"
#include "trainer/train/step/training_step.h"

namespace trainer {
namespace {

using testing::ElementsAreArray;
using testing::Pointwise;

constexpr double kLearningRate = 0.0002;

struct Steps {
  std::string backend;
  int count = 8;
  int batch = 16;  // of each rank
  int accumulate = 1;
  bool freeze_batch_norm = false;
  LossScale loss_scale = LossScale::Static(64);
  StepGraph graph = StepGraph::kAuto;
  double mixup = 0;
  double ema = 0;          // then averages are in place between the steps, where one evaluates
  double rate_growth = 0;  // of the learning rate, from step to step
  double rate = kLearningRate;
  OptimizerKind optimizer = OptimizerKind::kSgd;
  std::int64_t images = 64;  // of the set
  std::int64_t replay_check = 0;
};

// As the steps are, with LARS; the rate is far below those for use, so that roundings stay small.
Steps WithLars(Steps steps) {
  steps.optimizer = OptimizerKind::kLars;
  steps.rate = 0.005;
  return steps;
}

using Values = std::vector<std::vector<float>>;  // of each parameter

Values ExportAll(const Network& network, Network::Part part, Stream& stream) {
  Values values;
  for (const Parameter& parameter : network.parameters()) {
    values.push_back(network.Export(part, parameter, stream));
  }
  return values;
}

// With a decay of a half the bits are the same whether a product is fused with its sum or not.
void Move(Values& ema, const Values& values, float decay) {
  for (std::size_t i = 0; i < ema.size(); ++i) {
    for (std::size_t j = 0; j < ema[i].size(); ++j) {
      ema[i][j] += (1 - decay) * (values[i][j] - ema[i][j]);
    }
  }
}

// Of one rank.
struct Outcome {
  std::vector<StepResult> records;  // what each step reported
  Values weights;
  Values ema;               // if they are kept
  Values averages_on_host;  // as they should be, by the weights after each step
  bool recorded = false;
};

Outcome RunAll(Steps steps, Communicator& communicator) {
  TrainConfig config = SmallConfig("");
  config.batch_size = steps.batch;
  config.accumulate = steps.accumulate;
  config.freeze_batch_norm = steps.freeze_batch_norm;
  config.graph = steps.graph;
  config.mixup = steps.mixup;
  config.ema = steps.ema;
  config.optimizer = steps.optimizer;
  config.replay_check = steps.replay_check;
  const auto backend = MakeTestedBackend(steps.backend, /*threads=*/1);
  const auto stream = backend->MakeStream();
  const NetworkSpec spec{.arch = config.arch,
                         .batch_size = config.batch_size,
                         .height = config.image_size,
                         .width = config.image_size,
                         .classes = config.classes,
                         .label_smoothing = 0.1F,
                         .ema = steps.ema};
  Network network(*backend, spec);
  Initialize(network, {}, *stream);
  Outcome outcome;
  if (steps.ema > 0) {
    network.InitEma(*stream);
    outcome.averages_on_host = ExportAll(network, Network::Part::kValue, *stream);
  }
  DeviceBatch device_batch(*backend, spec);
  GeneratedSourceOptions options;
  options.batch = config.batch_size;
  options.classes = static_cast<int>(config.classes);
  options.rank = communicator.rank();
  options.ranks = communicator.size();
  options.samples = steps.images;
  GeneratedSource source(options);
  TrainingStep step({config, *backend, network, device_batch, communicator, *stream,
                     steps.loss_scale, source, steps.count});
  for (int i = 0; i < steps.count; ++i) {
    const double learning_rate = steps.rate * (1 + i * steps.rate_growth);
    outcome.records.push_back(step.Run(i, learning_rate, {}).record);
    SwapInEma(network, *stream, [] {});
    if (steps.ema == 0 || outcome.records.back().skipped) continue;
    Move(outcome.averages_on_host, ExportAll(network, Network::Part::kValue, *stream),
         static_cast<float>(steps.ema));
  }
  outcome.weights = ExportAll(network, Network::Part::kValue, *stream);
  if (steps.ema > 0) outcome.ema = ExportAll(network, Network::Part::kAverage, *stream);
  outcome.recorded = step.records();
  return outcome;
}

Outcome RunAll(const Steps& steps) {
  OneRank communicator;
  return RunAll(steps, communicator);
}

std::vector<StepResult> RunSteps(const Steps& steps, Communicator& communicator) {
  return RunAll(steps, communicator).records;
}

std::vector<StepResult> RunSteps(const Steps& steps) { return RunAll(steps).records; }

std::vector<double> Losses(const std::vector<StepResult>& records) {
  std::vector<double> losses;
  for (const StepResult& record : records) losses.push_back(record.total_loss());
  return losses;
}

class TrainingOn : public testing::TestWithParam<std::string> {
 protected:
  bool is_fp16() const { return GetParam().ends_with("_fp16"); }
  bool is_bf16() const { return GetParam().ends_with("_bf16"); }
  // How far losses may be apart, of the larger one.
  double Tolerance() const { return is_bf16() ? 0.05 : is_fp16() ? 0.02 : 1e-3; }
};

MATCHER_P(AreWithin, tolerance, "") {
  const double a = std::get<0>(arg);
  const double b = std::get<1>(arg);
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

// Small images and random weights make batch statistics that a rounding to 16 bits moves far.
TEST_P(TrainingOn, HasTheLossesOfTheReference) {
  Steps steps{.backend = GetParam(), .freeze_batch_norm = is_fp16() || is_bf16()};
  const std::vector<double> losses = Losses(RunSteps(steps));
  steps.backend = "reference";
  EXPECT_THAT(losses, Pointwise(AreWithin(Tolerance()), Losses(RunSteps(steps))));
}

// In 16 bits the weights that are computed with come back as they were, too.
TEST_P(TrainingOn, AveragesInPlaceOfTheWeightsLeaveNoTrace) {
  Steps steps{.backend = GetParam() + std::string(kRepeating), .count = 3, .batch = 4};
  const Outcome expected = RunAll(steps);
  steps.ema = 0.5;
  const Outcome outcome = RunAll(steps);
  EXPECT_EQ(outcome.weights, expected.weights);
  EXPECT_EQ(Losses(outcome.records), Losses(expected.records));
}

TEST_P(TrainingOn, LearnsWithStatisticsOfTheBatch) {
  const std::vector<double> losses = Losses(RunSteps({.backend = GetParam(), .count = 30}));
  const auto mean = [](auto begin, auto end) {
    return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
  };
  EXPECT_LT(mean(losses.end() - 5, losses.end()), 0.7 * mean(losses.begin(), losses.begin() + 5));
}

TEST_P(TrainingOn, RepeatsBitForBit) {
  const Steps steps{.backend = GetParam() + std::string(kRepeating), .count = 4};
  const std::vector<double> losses = Losses(RunSteps(steps));
  EXPECT_THAT(Losses(RunSteps(steps)), ElementsAreArray(losses));
}

// Everything that may change from step to step does: learning rate, mixup, loss scale, batch.
TEST_P(TrainingOn, AsOneGraphIsEqualToCallByCall) {
  Steps steps{.backend = GetParam() + std::string(kRepeating),
              .count = 7,
              .batch = 8,
              .loss_scale = LossScale::Dynamic(16777216),
              .graph = StepGraph::kOff,
              .mixup = 0.4,
              .ema = 0.5,
              .rate_growth = 0.5};
  const Outcome expected = RunAll(steps);
  EXPECT_FALSE(expected.recorded);
  EXPECT_EQ(expected.ema, expected.averages_on_host);
  EXPECT_NE(expected.ema, expected.weights);
  steps.graph = StepGraph::kAuto;
  const Outcome outcome = RunAll(steps);
  EXPECT_EQ(outcome.recorded, GetParam().starts_with("cuda"));
  EXPECT_THAT(Losses(outcome.records), ElementsAreArray(Losses(expected.records)));
  EXPECT_EQ(outcome.weights, expected.weights);
  EXPECT_EQ(outcome.ema, expected.ema);
  for (const StepResult& record : outcome.records) {
    EXPECT_GT(record.times[StepPhase::kForward], 0);
    EXPECT_GT(record.times[StepPhase::kBackward], 0);
    EXPECT_GT(record.times.step, 0);
  }
}

TEST_P(TrainingOn, RejectsAGraphThatCannotBeHad) {
  const Steps steps{.backend = GetParam(), .count = 1, .batch = 8, .graph = StepGraph::kOn};
  const bool has_graphs = GetParam().starts_with("cuda");
  const auto rejection = [&](Communicator& communicator) {
    return tests::Rejection<Error>(EX_USAGE, [&] { RunSteps(steps, communicator); });
  };
  OneRank alone;
  EXPECT_EQ(rejection(alone), has_graphs ? ""
                                         : "--graph=on: the back end " + GetParam() +
                                               " has no graphs; use --graph=auto");
  RunRanks(2, [&](Communicator& communicator) {
    EXPECT_THAT(rejection(communicator), HasSubstr("use --graph=auto"));
  });
}

TEST_P(TrainingOn, OfTwoRanksIsThatOfOneWithTwiceTheBatch) {
  const Steps two{.backend = GetParam(), .count = 4, .batch = 8, .freeze_batch_norm = true};
  std::vector<double> losses;
  RunRanks(2, [&](Communicator& communicator) {
    const std::vector<StepResult> records = RunSteps(two, communicator);
    if (communicator.rank() == 0) losses = Losses(records);
  });
  Steps one = two;
  one.batch = 16;
  EXPECT_THAT(losses, Pointwise(AreWithin(Tolerance()), Losses(RunSteps(one))));
}

TEST_P(TrainingOn, OfSeveralBatchesIsThatOfALargeOne) {
  const Steps deps{
      .backend = GetParam(), .count = 4, .batch = 4, .accumulate = 4, .freeze_batch_norm = true};
  Steps whole = deps;
  whole.batch = 16;
  whole.accumulate = 1;
  const std::vector<StepResult> records = RunSteps(deps);
  const std::vector<StepResult> expected = RunSteps(whole);
  EXPECT_THAT(Losses(records), Pointwise(AreWithin(Tolerance()), Losses(expected)));
  for (std::size_t i = 0; i < records.size(); ++i) {
    const double norm = expected[i].gradient_norm;
    EXPECT_NEAR(records[i].gradient_norm, norm, 2 * Tolerance() * norm) << i;
    EXPECT_NEAR(records[i].top1, expected[i].top1, is_fp16() || is_bf16() ? 0.126 : 0) << i;
  }
}

TEST_P(TrainingOn, AsGraphsOfBatchesIsEqualToCallByCall) {
  Steps steps{.backend = GetParam() + std::string(kRepeating),
              .count = 4,
              .batch = 4,
              .accumulate = 3,
              .loss_scale = LossScale::Dynamic(16777216),
              .graph = StepGraph::kOff,
              .mixup = 0.4,
              .ema = 0.5,
              .rate_growth = 0.5};
  const Outcome expected = RunAll(steps);
  steps.graph = StepGraph::kAuto;
  const Outcome outcome = RunAll(steps);
  EXPECT_EQ(outcome.recorded, GetParam().starts_with("cuda"));
  EXPECT_THAT(Losses(outcome.records), ElementsAreArray(Losses(expected.records)));
  EXPECT_EQ(outcome.weights, expected.weights);
  EXPECT_EQ(outcome.ema, expected.ema);
  EXPECT_EQ(outcome.ema, outcome.averages_on_host);
}

// The loss scale overflows at first; steps that are replayed are between those that are graphs.
TEST_P(TrainingOn, WithStepsThatAreReplayedIsEqualToThatWithout) {
  for (const int accumulate : {1, 2}) {
    Steps steps{.backend = GetParam() + std::string(kRepeating),
                .count = 4,
                .batch = 4,
                .accumulate = accumulate,
                .loss_scale = LossScale::Dynamic(16777216),
                .mixup = 0.4,
                .ema = 0.5,
                .rate_growth = 0.5};
    const Outcome expected = RunAll(steps);
    for (const std::int64_t replay_check : {1, 3}) {
      steps.replay_check = replay_check;
      const Outcome outcome = RunAll(steps);
      EXPECT_EQ(outcome.recorded, GetParam().starts_with("cuda") && replay_check > 1);
      EXPECT_THAT(Losses(outcome.records), ElementsAreArray(Losses(expected.records)));
      EXPECT_EQ(outcome.weights, expected.weights);
      EXPECT_EQ(outcome.ema, expected.ema);
    }
  }
}

// As it is trained by default, where bits may differ.
TEST_P(TrainingOn, ReplaysStepsOfASoundDeviceWithinItsTolerance) {
  const Steps steps{.backend = GetParam(),
                    .count = 6,
                    .loss_scale = LossScale::Dynamic(65536),
                    .replay_check = 1};
  EXPECT_EQ(RunSteps(steps).size(), 6);
}

TEST_P(TrainingOn, WithLarsHasTheLossesOfTheReference) {
  Steps steps = WithLars({.backend = GetParam(), .freeze_batch_norm = is_fp16() || is_bf16()});
  const std::vector<double> losses = Losses(RunSteps(steps));
  steps.backend = "reference";
  EXPECT_THAT(losses, Pointwise(AreWithin(Tolerance()), Losses(RunSteps(steps))));
  EXPECT_LT(losses.back(), losses.front());
}

TEST_P(TrainingOn, WithLarsAsGraphsIsEqualToCallByCall) {
  Steps steps = WithLars({.backend = GetParam() + std::string(kRepeating),
                          .count = 6,
                          .batch = 4,
                          .accumulate = 2,
                          .loss_scale = LossScale::Dynamic(16777216),
                          .graph = StepGraph::kOff,
                          .mixup = 0.4,
                          .ema = 0.5,
                          .rate_growth = 0.5});
  const Outcome expected = RunAll(steps);
  steps.graph = StepGraph::kAuto;
  const Outcome outcome = RunAll(steps);
  EXPECT_EQ(outcome.recorded, GetParam().starts_with("cuda"));
  EXPECT_THAT(Losses(outcome.records), ElementsAreArray(Losses(expected.records)));
  EXPECT_EQ(outcome.weights, expected.weights);
  EXPECT_EQ(outcome.ema, outcome.averages_on_host);
}

// All ranks have the same images, so that their sum is exact; batch norm needs no freezing then.
TEST_P(TrainingOn, WithLarsRanksAgreeToTheBit) {
  const Steps steps = WithLars({.backend = GetParam() + std::string(kRepeating),
                                .count = 6,
                                .batch = 4,
                                .rate_growth = 0.5,
                                .images = 4});
  const Values alone = RunAll(steps).weights;
  for (const int ranks : {2, 4}) {
    std::vector<Values> weights(static_cast<std::size_t>(ranks));
    RunRanks(ranks, [&](Communicator& communicator) {
      weights[static_cast<std::size_t>(communicator.rank())] = RunAll(steps, communicator).weights;
    });
    for (const Values& of_rank : weights) EXPECT_EQ(of_rank, alone) << ranks << " ranks";
  }
}

// In bf16 nothing overflows that does not in fp32.
TEST_P(TrainingOn, GoesOnAfterGradientsThatOverflow) {
  if (!is_fp16()) GTEST_SKIP() << "of fp16 alone";
  const std::vector<StepResult> records =
      RunSteps({.backend = GetParam(), .count = 24, .loss_scale = LossScale::Dynamic(16777216)});
  EXPECT_TRUE(records.front().skipped);
  EXPECT_FALSE(records.back().skipped);
  EXPECT_LT(records.back().loss_scale, 16777216);
  EXPECT_GE(records.back().loss_scale, 1);
  EXPECT_LT(records.back().total_loss(), records.front().total_loss());
}

TEST_P(TrainingOn, EndsWhenGradientsOverflowUnderAStaticScale) {
  if (!is_fp16()) GTEST_SKIP() << "of fp16 alone";
  EXPECT_THAT(tests::Rejection<Error>([&] {
                RunSteps({.backend = GetParam(), .loss_scale = LossScale::Static(16777216)});
              }),
              HasSubstr("the gradient is nan"));
}

INSTANTIATE_TEST_SUITE_P(AllBackends, TrainingOn, testing::ValuesIn(TestedBackends()),
                         [](const testing::TestParamInfo<std::string>& test) {
                           return test.param;
                         });

}  // namespace
}  // namespace trainer
