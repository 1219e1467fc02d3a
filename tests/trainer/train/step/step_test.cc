// SPDX-License-Identifier: Apache-2.0

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "tests/trainer/train/faulty_ranks.h"
#include "tests/trainer/train/thread_ranks.h"
#include "trainer/core/error.h"
#include "trainer/train/step/metrics.h"
#include "trainer/train/step/non_finite_guard.h"

namespace trainer {
namespace {

void GoodSteps(LossScale& scale, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) ASSERT_TRUE(scale.Update(false));
}

TEST(LossScale, StaticNeverMovesAndCannotTakeAnOverflow) {
  LossScale scale = LossScale::Static(256);
  GoodSteps(scale, 5000);
  EXPECT_EQ(scale.scale(), 256);
  EXPECT_FALSE(scale.Update(true));
  EXPECT_EQ(scale.scale(), 256);
}

TEST(LossScale, DynamicDoublesAfterTwoThousandGoodSteps) {
  LossScale scale = LossScale::Dynamic(256);
  GoodSteps(scale, 1999);
  EXPECT_EQ(scale.scale(), 256);
  GoodSteps(scale, 1);
  EXPECT_EQ(scale.scale(), 512);
  EXPECT_EQ(scale.good_steps(), 0);
}

TEST(LossScale, DynamicHalvesOnOverflowAndCountsAnew) {
  LossScale scale = LossScale::Dynamic(256);
  GoodSteps(scale, 1999);
  EXPECT_TRUE(scale.Update(true));
  EXPECT_EQ(scale.scale(), 128);
  GoodSteps(scale, 1999);
  EXPECT_EQ(scale.scale(), 128);
}

TEST(LossScale, DynamicGivesUpBelowOne) {
  LossScale scale = LossScale::Dynamic(2);
  EXPECT_TRUE(scale.Update(true));
  EXPECT_EQ(scale.scale(), 1);
  EXPECT_FALSE(scale.Update(true));
}

TEST(LossScale, DynamicStopsGrowingAtTheLargest) {
  LossScale scale = LossScale::Dynamic(LossScale::kLargest);
  GoodSteps(scale, 2000);
  EXPECT_EQ(scale.scale(), LossScale::kLargest);
}

TEST(LossScale, RestoredGoesOnWhereItWas) {
  LossScale scale = LossScale::Dynamic(256);
  scale.Restore(64, 1999);
  GoodSteps(scale, 1);
  EXPECT_EQ(scale.scale(), 128);

  LossScale fixed = LossScale::Static(256);
  fixed.Restore(64, 3);
  EXPECT_EQ(fixed.scale(), 256);
}

constexpr int kRanks = 4;

StepResult RecordOf(double cross_entropy) {
  StepResult record{.step = 12, .cross_entropy = cross_entropy, .learning_rate = 0.5};
  return record;
}

StepExchange Exchanged(int bad_gradients, int bad_weights = 0) {
  StepExchange all{.bad_gradients = bad_gradients, .bad_weights = bad_weights};
  return all;
}

// The message of the Error that Check throws.
std::string EndOf(NonFiniteGuard& watch, const StepResult& record, const StepExchange& all,
                  int exit_code = EX_SOFTWARE) {
  LossScale scale = LossScale::Static(1);
  return tests::Rejection<Error>(
      exit_code, [&] { watch.Check(record, all, scale); }, "the run goes on");
}

TEST(NonFiniteGuard, StopsSayingTheStepWhatItIsAndWhatToTry) {
  NonFiniteGuard watch(OnNan::kStop, kRanks);
  EXPECT_EQ(EndOf(watch, RecordOf(NAN), Exchanged(kRanks)),
            "step 12: the loss is nan (learning rate 0.5): training has diverged; start again from "
            "the last checkpoint with a smaller --lr_init or more --lr_warmup_epochs, or, where "
            "that has diverged too, from an older one: --resume_from=STEP (ddlctl checkpoint list "
            "DIR names them), or with "
            "--on_nan=skip, which leaves out single steps like this");
  EXPECT_THAT(EndOf(watch, RecordOf(2), Exchanged(kRanks)),
              HasSubstr("step 12: the gradient is nan"));
  EXPECT_THAT(EndOf(watch, RecordOf(INFINITY), Exchanged(0)), HasSubstr("the loss is inf"));
}

TEST(NonFiniteGuard, LeavesARollbackToItsCallerSayingWhatItFound) {
  NonFiniteGuard watch(OnNan::kRollback, kRanks);
  LossScale scale = LossScale::Dynamic(2);
  EXPECT_EQ(watch.Check(RecordOf(2), Exchanged(0), scale), Verdict::kUpdated);
  EXPECT_EQ(watch.Check(RecordOf(NAN), Exchanged(kRanks), scale), Verdict::kRollback);
  EXPECT_EQ(watch.found(), "step 12: the loss is nan (learning rate 0.5)");
  EXPECT_EQ(watch.Check(RecordOf(INFINITY), Exchanged(0), scale), Verdict::kRollback);
  EXPECT_EQ(watch.Check(RecordOf(2), Exchanged(kRanks), scale), Verdict::kOverflowed);
  EXPECT_EQ(watch.Check(RecordOf(2), Exchanged(kRanks), scale), Verdict::kRollback);
  EXPECT_EQ(watch.found(), "step 12: the gradient is nan (learning rate 0.5)");
  EXPECT_EQ(watch.Check(RecordOf(NAN), Exchanged(0, kRanks), scale), Verdict::kRollback);
  EXPECT_EQ(watch.found(), "step 12: the weights are too large or NaN (learning rate 0.5)");
}

TEST(NonFiniteGuard, WeightsThatAreNoNumbersEndTheRunOfThoseWhoHaveNothingToGoBackTo) {
  for (const OnNan on_nan : {OnNan::kStop, OnNan::kSkip}) {
    NonFiniteGuard watch(on_nan, kRanks);
    EXPECT_THAT(EndOf(watch, RecordOf(NAN), Exchanged(kRanks, kRanks)),
                AllOf(HasSubstr("step 12: the weights are too large or NaN (learning rate"),
                      HasSubstr("--lr_init"), Not(HasSubstr("--on_nan"))));
  }
}

TEST(NonFiniteGuard, LeavesOutTenStepsInARowAndNoMore) {
  NonFiniteGuard watch(OnNan::kSkip, kRanks);
  LossScale scale = LossScale::Static(1);
  const auto leave_out_ten = [&] {
    for (int i = 0; i < 10; ++i) {
      const double loss = i % 2 == 0 ? NAN : 2;  // of a gradient alone too
      EXPECT_EQ(watch.Check(RecordOf(loss), Exchanged(kRanks), scale), Verdict::kLeftOut);
    }
  };
  leave_out_ten();
  EXPECT_EQ(watch.Check(RecordOf(2), Exchanged(0), scale), Verdict::kUpdated);
  leave_out_ten();
  EXPECT_THAT(EndOf(watch, RecordOf(NAN), Exchanged(kRanks)),
              HasSubstr("step 12: the loss is nan (learning rate 0.5), after 10 steps in a row "
                        "whose updates were left out: training has diverged"));
}

TEST(NonFiniteGuard, LeavesOutNothingThatWasUsed) {
  NonFiniteGuard watch(OnNan::kSkip, kRanks);
  EXPECT_THAT(EndOf(watch, RecordOf(INFINITY), Exchanged(kRanks - 1)),
              HasSubstr("but its gradient was used, so that --on_nan=skip cannot leave it out"));
}

TEST(NonFiniteGuard, WhatIsNoNumberOnSomeRanksAloneIsAFaultOfTheMachine) {
  for (const OnNan on_nan : {OnNan::kStop, OnNan::kSkip, OnNan::kRollback}) {
    NonFiniteGuard watch(on_nan, kRanks);
    EXPECT_EQ(EndOf(watch, RecordOf(2), Exchanged(1), EX_OSERR),
              "step 12: 1 of 4 ranks find NaN or infinite values in gradients that are the same on "
              "all: a GPU or memory is failing; the same command with --paranoid=1 names the rank");
    EXPECT_THAT(EndOf(watch, RecordOf(NAN), Exchanged(4, 3), EX_OSERR),
                HasSubstr("3 of 4 ranks find NaN or infinite values in weights"));
  }
}

TEST(NonFiniteGuard, AnOverflowLowersTheLossScaleWhateverIsAskedFor) {
  for (const OnNan on_nan : {OnNan::kStop, OnNan::kSkip, OnNan::kRollback}) {
    NonFiniteGuard watch(on_nan, kRanks);
    LossScale scale = LossScale::Dynamic(2);
    EXPECT_EQ(watch.Check(RecordOf(2), Exchanged(kRanks), scale), Verdict::kOverflowed);
    EXPECT_EQ(scale.scale(), 1);
  }
}

TEST(NonFiniteGuard, ALossThatIsNoNumberDoesNotLowerTheLossScale) {
  NonFiniteGuard watch(OnNan::kSkip, kRanks);
  LossScale scale = LossScale::Dynamic(256);
  EXPECT_EQ(watch.Check(RecordOf(NAN), Exchanged(kRanks), scale), Verdict::kLeftOut);
  EXPECT_EQ(scale.scale(), 256);
}

TrainConfig SkippingConfig(const TemporaryDirectory& directory) {
  TrainConfig config = SmallConfig(directory.path());
  config.on_nan = OnNan::kSkip;
  config.checkpoint_every = 1;
  config.keep_checkpoints = 100;
  return config;
}

// Weights, momentum, and each rank's running statistics.
using Tensors = std::map<std::string, std::vector<float>>;
std::pair<Tensors, Tensors> StateAt(const TemporaryDirectory& directory, std::int64_t step) {
  const fs::path saved = CheckpointDirectory(directory.path(), step);
  return {TensorsOf(saved / "model.safetensors"), TensorsOf(saved / "optimizer.safetensors")};
}

TEST(NonFiniteGuard, AStepThatIsLeftOutLeavesNoTraceOnAnyBackEnd) {
  for (const std::string& backend : BackendNames()) {
    if (!BackendProblem(backend).empty()) continue;
    SCOPED_TRACE(backend);
    const TemporaryDirectory directory;
    const Fault fault = {.steps = {2, 4}, .is_of_loss_too = true};
    const auto ends = TrainWith(fault, SkippingConfig(directory), 2, false, backend);
    EXPECT_EQ(ends[0].message + ends[1].message, "");
    EXPECT_EQ(StateAt(directory, 3), StateAt(directory, 2));
    EXPECT_NE(StateAt(directory, 4), StateAt(directory, 3));
    EXPECT_EQ(StateAt(directory, 5), StateAt(directory, 4));
    EXPECT_NE(StateAt(directory, 6), StateAt(directory, 5));
  }
}

TEST(NonFiniteGuard, StepsThatAreLeftOutAreSaidOnceAndCountedAtTheEnd) {
  const TemporaryDirectory directory;
  const Fault fault = {.steps = {2, 4}};
  const auto ends = TrainWith(fault, SkippingConfig(directory));
  EXPECT_THAT(
      ends[0].log,
      AllOf(HasSubstr("step 2: a gradient is NaN or infinite: update skipped (--on_nan=skip)"),
            Not(HasSubstr("step 4: ")),
            HasSubstr("2 updates were left out, for the loss or a gradient")));
  EXPECT_THAT(ends[1].log, Not(HasSubstr("left out")));
}

TEST(NonFiniteGuard, EveryRankEndsAtTheSameStep) {
  const TemporaryDirectory directory;
  TrainConfig config = SkippingConfig(directory);
  config.checkpoint_every = 0;
  config.schedule.num_iter = 20;
  Fault fault = {.is_of_loss_too = true};
  for (int step = 3; step < 20; ++step) fault.steps.insert(step);
  auto ends = TrainWith(fault, config);
  EXPECT_THAT(ends[0].message, HasSubstr("step 13: the loss is nan"));
  EXPECT_EQ(ends[1].message, ends[0].message);
  EXPECT_EQ(ends[1].exit_code, EX_SOFTWARE);

  config.on_nan = OnNan::kStop;
  ends = TrainWith(fault, config);
  EXPECT_THAT(ends[0].message, HasSubstr("step 3: the loss is nan"));
  EXPECT_EQ(ends[1].message, ends[0].message);
  EXPECT_FALSE(fs::exists(directory.path() / "checkpoints"));
}

TEST(RankSeconds, EachRankHearsOfAllInEveryStep) {
  RunRanks(3, [](Communicator& communicator) {
    RankSeconds seconds(communicator.rank(), 3);
    for (const double step : {1.0, 2.0}) {
      StepExchange own;
      own.bad_weights = 1;
      own.rank_seconds = seconds.Say(step * (communicator.rank() + 1));
      EXPECT_EQ(Exchange(own, communicator).bad_weights, 3);
      EXPECT_THAT(seconds.Received(), ElementsAre(step, 2 * step, 3 * step));
    }
  });
}

// Sums what 130 ranks say, and gives what rank 0 has heard.
std::vector<double> Step(std::vector<RankSeconds>& ranks, double seconds) {
  std::vector<double> sum(RankSeconds::kPlaces);
  std::vector<std::span<double>> said;
  for (RankSeconds& rank : ranks) {
    said.push_back(rank.Say(seconds));
    for (std::size_t i = 0; i < said.back().size(); ++i) sum[i] += said.back()[i];
    EXPECT_EQ(said.back().size(), said.front().size());
  }
  std::vector<double> received;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    std::copy_n(sum.begin(), said[i].size(), said[i].begin());
    const auto all = ranks[i].Received();
    if (i == 0) received.assign(all.begin(), all.end());
  }
  return received;
}

TEST(RankSeconds, ManyRanksTakeTurnsAndTellTheirMeans) {
  constexpr int kRanks = 130;
  std::vector<RankSeconds> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.emplace_back(rank, kRanks);
  std::vector<double> received = Step(ranks, 3);
  EXPECT_EQ(received[0], 3);
  EXPECT_EQ(received[63], 3);
  EXPECT_EQ(received[64], 0) << "it has not spoken yet";
  received = Step(ranks, 6);
  EXPECT_EQ(received[63], 3);
  EXPECT_EQ(received[64], 4.5);
  received = Step(ranks, 9);
  EXPECT_EQ(received[127], 4.5);
  EXPECT_EQ(received[128], 6);
  EXPECT_EQ(received[129], 6);
  received = Step(ranks, 12);
  EXPECT_EQ(received[0], 9) << "mean of what came after its first turn";
  EXPECT_EQ(received[129], 6);
}

DeviceState StateOf(std::optional<int> percent, std::optional<int> mhz,
                    std::optional<int> celsius) {
  DeviceState state{.compute_mhz = mhz, .celsius = celsius, .busy_percent = percent};
  return state;
}

void ExpectSameState(const DeviceState& state, const DeviceState& other) {
  EXPECT_EQ(state.busy_percent, other.busy_percent);
  EXPECT_EQ(state.compute_mhz, other.compute_mhz);
  EXPECT_EQ(state.celsius, other.celsius);
}

TEST(PackedState, IsUnpackedWithWhatIsNotKnown) {
  for (const DeviceState& state :
       {StateOf({}, {}, {}), StateOf(0, 0, 0), StateOf(100, {}, 61), StateOf({}, 65534, {}),
        StateOf(65534, 65534, 65534), StateOf(98, 1980, {})}) {
    const double packed = PackState(state);
    EXPECT_GT(packed, 0);
    ExpectSameState(UnpackState(packed), state);
  }
  ExpectSameState(UnpackState(PackState(StateOf(-1, 65535, 7))), StateOf({}, {}, 7));
}

constexpr int kSayingRanks = 19;  // three groups, of 8, 8 and 3

TEST(RankMetricsExchange, RanksTakeTurnsInTheSumOfTheStep) {
  RunRanks(kSayingRanks, [](Communicator& communicator) {
    const int rank = communicator.rank();
    RankMetricsExchange words(rank, kSayingRanks);
    for (int step = 0; step < 4; ++step) {
      StepExchange own;
      own.bad_weights = 1;
      own.rank_metrics_exchange = words.Say(rank + step, StateOf(rank, 1000 + step, {}));
      EXPECT_EQ(own.rank_metrics_exchange.size(), step == 2 ? 6U : 16U);
      EXPECT_EQ(Exchange(own, communicator).bad_weights, kSayingRanks);
      const auto received = words.Received();
      ASSERT_EQ(received.size(), 19U);
      // In the first three steps the groups speak in their order, then the first again.
      EXPECT_TRUE(received[7].is_known);
      EXPECT_EQ(received[8].is_known, step >= 1);
      EXPECT_EQ(received[18].is_known, step >= 2);
      ExpectSameState(received[7].device, StateOf(7, step < 3 ? 1000 : 1003, {}));
      EXPECT_EQ(received[7].input_wait_seconds, step < 3 ? 7 : 7 + 2) << "mean of steps 1 to 3";
      if (step >= 1) {
        EXPECT_EQ(received[8].input_wait_seconds, 8.5) << "mean of steps 0 and 1";
        ExpectSameState(received[8].device, StateOf(8, 1001, {}));
      }
      if (step >= 2) {
        EXPECT_EQ(received[18].input_wait_seconds, 19);
      }
    }
  });
}

}  // namespace
}  // namespace trainer
