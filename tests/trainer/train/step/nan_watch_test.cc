// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/step/nan_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/trainer/train/faulty_ranks.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kRanks = 4;

StepRecord RecordOf(double cross_entropy) {
  StepRecord record;
  record.step = 12;
  record.learning_rate = 0.5;
  record.cross_entropy = cross_entropy;
  return record;
}

StepExchange Exchanged(int bad_gradients, int bad_weights = 0) {
  StepExchange all;
  all.bad_gradients = bad_gradients;
  all.bad_weights = bad_weights;
  return all;
}

// The message of the Error that Judge throws.
std::string EndOf(NanWatch& watch, const StepRecord& record, const StepExchange& all,
                  int exit_code = EX_SOFTWARE) {
  LossScale scale = LossScale::Static(1);
  try {
    watch.Judge(record, all, scale);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), exit_code);
    return error.what();
  }
  ADD_FAILURE() << "the run goes on";
  return "";
}

TEST(NanWatch, StopsSayingTheStepWhatItIsAndWhatToTry) {
  NanWatch watch(OnNan::kStop, kRanks);
  EXPECT_EQ(EndOf(watch, RecordOf(NAN), Exchanged(kRanks)),
            "step 12: the loss is nan (learning rate 0.5): training has diverged; start again from "
            "the last checkpoint with a smaller --lr_init or more --lr_warmup_epochs, or with "
            "--on_nan=skip, which leaves out single steps like this");
  EXPECT_THAT(EndOf(watch, RecordOf(2), Exchanged(kRanks)),
              HasSubstr("step 12: the gradient is nan"));
  EXPECT_THAT(EndOf(watch, RecordOf(INFINITY), Exchanged(0)), HasSubstr("the loss is inf"));
}

TEST(NanWatch, LeavesARollbackToItsCallerSayingWhatItFound) {
  NanWatch watch(OnNan::kRollback, kRanks);
  LossScale scale = LossScale::Dynamic(2);
  EXPECT_EQ(watch.Judge(RecordOf(2), Exchanged(0), scale), Verdict::kUpdated);
  EXPECT_EQ(watch.Judge(RecordOf(NAN), Exchanged(kRanks), scale), Verdict::kRollback);
  EXPECT_EQ(watch.found(), "step 12: the loss is nan (learning rate 0.5)");
  EXPECT_EQ(watch.Judge(RecordOf(INFINITY), Exchanged(0), scale), Verdict::kRollback);
  EXPECT_EQ(watch.Judge(RecordOf(2), Exchanged(kRanks), scale), Verdict::kOverflowed);
  EXPECT_EQ(watch.Judge(RecordOf(2), Exchanged(kRanks), scale), Verdict::kRollback);
  EXPECT_EQ(watch.found(), "step 12: the gradient is nan (learning rate 0.5)");
  EXPECT_EQ(watch.Judge(RecordOf(NAN), Exchanged(0, kRanks), scale), Verdict::kRollback);
  EXPECT_EQ(watch.found(), "step 12: the weights are too large or no numbers (learning rate 0.5)");
}

TEST(NanWatch, WeightsThatAreNoNumbersEndTheRunOfThoseWhoHaveNothingToGoBackTo) {
  for (const OnNan on_nan : {OnNan::kStop, OnNan::kSkip}) {
    NanWatch watch(on_nan, kRanks);
    EXPECT_THAT(EndOf(watch, RecordOf(NAN), Exchanged(kRanks, kRanks)),
                AllOf(HasSubstr("step 12: the weights are too large or no numbers (learning rate"),
                      HasSubstr("--lr_init"), Not(HasSubstr("--on_nan"))));
  }
}

TEST(NanWatch, LeavesOutTenStepsInARowAndNoMore) {
  NanWatch watch(OnNan::kSkip, kRanks);
  LossScale scale = LossScale::Static(1);
  const auto leave_out_ten = [&] {
    for (int i = 0; i < 10; ++i) {
      const double loss = i % 2 == 0 ? NAN : 2;  // of a gradient alone too
      EXPECT_EQ(watch.Judge(RecordOf(loss), Exchanged(kRanks), scale), Verdict::kLeftOut);
    }
  };
  leave_out_ten();
  EXPECT_EQ(watch.Judge(RecordOf(2), Exchanged(0), scale), Verdict::kUpdated);
  leave_out_ten();
  EXPECT_THAT(EndOf(watch, RecordOf(NAN), Exchanged(kRanks)),
              HasSubstr("step 12: the loss is nan (learning rate 0.5), after 10 steps in a row "
                        "whose updates were left out: training has diverged"));
}

TEST(NanWatch, LeavesOutNothingThatWasUsed) {
  NanWatch watch(OnNan::kSkip, kRanks);
  EXPECT_THAT(EndOf(watch, RecordOf(INFINITY), Exchanged(kRanks - 1)),
              HasSubstr("but its gradient was used, so that --on_nan=skip cannot leave it out"));
}

TEST(NanWatch, WhatIsNoNumberOnSomeRanksAloneIsAFaultOfTheMachine) {
  for (const OnNan on_nan : {OnNan::kStop, OnNan::kSkip, OnNan::kRollback}) {
    NanWatch watch(on_nan, kRanks);
    EXPECT_EQ(EndOf(watch, RecordOf(2), Exchanged(1), EX_OSERR),
              "step 12: 1 of 4 ranks find numbers that are none in gradients that are the same on "
              "all: a GPU or memory is failing; the same command with --paranoid=1 names the rank");
    EXPECT_THAT(EndOf(watch, RecordOf(NAN), Exchanged(4, 3), EX_OSERR),
                HasSubstr("3 of 4 ranks find numbers that are none in weights"));
  }
}

TEST(NanWatch, AnOverflowLowersTheLossScaleWhateverIsAskedFor) {
  for (const OnNan on_nan : {OnNan::kStop, OnNan::kSkip, OnNan::kRollback}) {
    NanWatch watch(on_nan, kRanks);
    LossScale scale = LossScale::Dynamic(2);
    EXPECT_EQ(watch.Judge(RecordOf(2), Exchanged(kRanks), scale), Verdict::kOverflowed);
    EXPECT_EQ(scale.scale(), 1);
  }
}

TEST(NanWatch, ALossThatIsNoNumberDoesNotLowerTheLossScale) {
  NanWatch watch(OnNan::kSkip, kRanks);
  LossScale scale = LossScale::Dynamic(256);
  EXPECT_EQ(watch.Judge(RecordOf(NAN), Exchanged(kRanks), scale), Verdict::kLeftOut);
  EXPECT_EQ(scale.scale(), 256);
}

TrainConfig SkippingConfig(const TemporaryFolder& folder) {
  TrainConfig config = SmallConfig(folder.path());
  config.on_nan = OnNan::kSkip;
  config.checkpoint_every = 1;
  config.keep_checkpoints = 100;
  return config;
}

// Weights, momentum, and each rank's running statistics.
using Tensors = std::map<std::string, std::vector<float>>;
std::pair<Tensors, Tensors> StateAt(const TemporaryFolder& folder, std::int64_t step) {
  const std::filesystem::path saved = CheckpointFolder(folder.path(), step);
  return {TensorsOf(saved / "model.safetensors"), TensorsOf(saved / "optimizer.safetensors")};
}

TEST(NanWatch, AStepThatIsLeftOutLeavesNoTraceOnAnyBackEnd) {
  for (const std::string& backend : BackendNames()) {
    if (!BackendProblem(backend).empty()) continue;
    SCOPED_TRACE(backend);
    const TemporaryFolder folder;
    const Fault fault = {.steps = {2, 4}, .is_of_loss_too = true};
    const auto ends = TrainWith(fault, SkippingConfig(folder), 2, false, backend);
    EXPECT_EQ(ends[0].message + ends[1].message, "");
    EXPECT_EQ(StateAt(folder, 3), StateAt(folder, 2));
    EXPECT_NE(StateAt(folder, 4), StateAt(folder, 3));
    EXPECT_EQ(StateAt(folder, 5), StateAt(folder, 4));
    EXPECT_NE(StateAt(folder, 6), StateAt(folder, 5));
  }
}

TEST(NanWatch, StepsThatAreLeftOutAreSaidOnceAndCountedAtTheEnd) {
  const TemporaryFolder folder;
  const Fault fault = {.steps = {2, 4}};
  const auto ends = TrainWith(fault, SkippingConfig(folder));
  EXPECT_THAT(ends[0].log, AllOf(HasSubstr("step 2: a gradient is no number, and the update is "
                                           "left out (--on_nan=skip)"),
                                 Not(HasSubstr("step 4: ")),
                                 HasSubstr("2 updates were left out, for the loss or a gradient")));
  EXPECT_THAT(ends[1].log, Not(HasSubstr("left out")));
}

TEST(NanWatch, EveryRankEndsAtTheSameStep) {
  const TemporaryFolder folder;
  TrainConfig config = SkippingConfig(folder);
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
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "checkpoints"));
}

}  // namespace
}  // namespace trainer
