// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/schedule.h"

#include <numbers>

#include "tests/support/refusal.h"
#include "tests/support/test.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

constexpr std::int64_t kImageNet = 1281167;

// ImageNet on 4 ranks with 256 each: 1281167 / 1024 = 1251.14.
Schedule Epochs(std::int64_t epochs, bool cosine) {
  ScheduleConfig config;
  config.num_iter = epochs;
  config.lr_warmup_epochs = 8;
  config.lr_schedule = cosine ? RateDecay::kCosine : RateDecay::kSteps;
  return MakeSchedule(config, kImageNet, {256, 4});
}

TEST(Schedule, CountsEpochsInWholeSteps) {
  const Schedule schedule = Epochs(50, true);
  EXPECT_EQ(schedule.global_batch, 1024);
  EXPECT_EQ(schedule.whole_steps_per_epoch, 1251);
  EXPECT_EQ(schedule.total_steps, 62550);
  EXPECT_EQ(schedule.decay_steps, 62550);
  EXPECT_EQ(schedule.warmup_steps, 10008);
  EXPECT_EQ(schedule.EpochOf(1250), 0);
  EXPECT_EQ(schedule.EpochOf(1251), 1);
}

TEST(Schedule, EndsPeriodsOfEpochsOrSteps) {
  const Schedule epochs = Epochs(50, true);
  EXPECT_FALSE(epochs.EndsPeriod(0, 1));
  EXPECT_TRUE(epochs.EndsPeriod(1251, 1));
  EXPECT_FALSE(epochs.EndsPeriod(1250, 1));
  EXPECT_FALSE(epochs.EndsPeriod(1252, 1));
  EXPECT_FALSE(epochs.EndsPeriod(1251, 2));
  EXPECT_TRUE(epochs.EndsPeriod(2502, 2));
  // Half way through an epoch with twice the batch: the third is over before half of its steps are.
  ScheduleConfig config{.num_iter = 3};
  const Schedule wide = MakeSchedule(config, 64, {16, 1}).From({10, 80});
  EXPECT_FALSE(wide.EndsPeriod(12, 1));
  EXPECT_TRUE(wide.EndsPeriod(13, 1));
  config.iter_unit = IterationUnit::kBatch;
  const Schedule steps = MakeSchedule(config, 64, {16, 1});
  EXPECT_TRUE(steps.EndsPeriod(6, 3));
  EXPECT_FALSE(steps.EndsPeriod(5, 3));
  EXPECT_FALSE(steps.EndsPeriod(0, 3));
}

TEST(Schedule, CountsBatchesAsTheyAre) {
  ScheduleConfig config{.iter_unit = IterationUnit::kBatch, .num_iter = 2000};
  const Schedule schedule = MakeSchedule(config, kImageNet, {256, 4});
  EXPECT_EQ(schedule.total_steps, 2000);
  EXPECT_EQ(schedule.epochs, 2);                     // ceil(2000 / 1251)
  EXPECT_DOUBLE_EQ(schedule.steps_per_epoch, 1000);  // 2000 / 2
  EXPECT_EQ(schedule.warmup_steps, 5000);
  EXPECT_EQ(schedule.decay_steps, 112602);  // 90 * 1281167 / 1024 = 112602.57
}

TEST(Schedule, RateGrowsWithTheGlobalBatch) {
  EXPECT_DOUBLE_EQ(Epochs(50, true).rescaled_rate, 0.4);  // 0.1 * 1024 / 256
}

TEST(Schedule, WarmUpRisesFromZero) {
  const Schedule schedule = Epochs(50, true);
  EXPECT_EQ(schedule.LearningRate(0), 0);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(5004), 0.2);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(10007), 0.4 * 10007 / 10008);
}

TEST(Schedule, CosineCountsFromStepZeroSoTheRateDropsAfterWarmUp) {
  const Schedule schedule = Epochs(50, true);
  EXPECT_NEAR(schedule.LearningRate(10008) / 0.4, 0.93815, 1e-5);  // (1 + cos(0.16 pi)) / 2
  EXPECT_NEAR(schedule.LearningRate(31275), 0.2, 1e-12);           // half way
  EXPECT_NEAR(schedule.LearningRate(62550), 0, 1e-12);
  EXPECT_NEAR(schedule.LearningRate(99999), 0, 1e-12);
}

// As MLPerf's reference has it: 42 epochs of 4,096 images, 5 of them warm-up.
TEST(Schedule, PolynomialCountsFromTheEndOfTheWarmUpToTheEndOfTraining) {
  ScheduleConfig config;
  config.num_iter = 42;
  config.lr_init = 10;
  config.lr_scaling = RateScaling::kNone;
  config.lr_schedule = RateDecay::kPolynomial;
  const Schedule schedule = MakeSchedule(config, kImageNet, {256, 16});  // 312 steps an epoch
  EXPECT_EQ(schedule.warmup_steps, 1560);
  EXPECT_EQ(schedule.decay_steps, 13104 - 1560);
  EXPECT_EQ(schedule.LearningRate(0), 0);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(780), 5);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(1560), 10);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(1560 + 5772), 0.0001 + (10 - 0.0001) / 4);  // half way
  EXPECT_GT(schedule.LearningRate(13103), 0.0001);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(13104), 0.0001);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(99999), 0.0001);
}

TEST(Schedule, PolynomialTakesAsManyStepsAsAreGivenAndNeverRises) {
  ScheduleConfig config;
  config.num_iter = 10;
  config.lr_init = 0.00005;
  config.lr_warmup_epochs = 1;
  config.lr_schedule = RateDecay::kPolynomial;
  config.lr_decay_steps = 30;
  config.lr_end = 0;
  const Schedule schedule = MakeSchedule(config, 1000, {100, 1});
  const double rate = schedule.rescaled_rate;
  EXPECT_DOUBLE_EQ(schedule.LearningRate(10 + 15), rate / 4);
  EXPECT_EQ(schedule.LearningRate(10 + 30), 0);
  config.lr_end = 1;  // above the rate
  EXPECT_DOUBLE_EQ(MakeSchedule(config, 1000, {100, 1}).LearningRate(25), rate);
  // Warm-up for longer than there is training.
  config.lr_decay_steps = 0;
  config.lr_warmup_epochs = 20;
  EXPECT_EQ(MakeSchedule(config, 1000, {100, 1}).decay_steps, 1);
}

TEST(Schedule, ScalesTheRateAsIsAsked) {
  const auto rate = [](RateScaling scaling) {
    ScheduleConfig config{.lr_init = 0.2, .lr_scaling = scaling};
    return MakeSchedule(config, kImageNet, {256, 16}).rescaled_rate;
  };
  EXPECT_DOUBLE_EQ(rate(RateScaling::kLinear), 3.2);
  EXPECT_DOUBLE_EQ(rate(RateScaling::kSqrt), 0.8);
  EXPECT_DOUBLE_EQ(rate(RateScaling::kNone), 0.2);
}

TEST(Schedule, StepDecayChangesAfterTheBoundary) {
  const Schedule schedule = Epochs(100, false);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(10008), 0.4);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(37530), 0.4);  // 30 * 1251
  EXPECT_DOUBLE_EQ(schedule.LearningRate(37531), 0.04);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(75060), 0.04);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(75061), 0.004);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(100081), 0.0004);
  EXPECT_DOUBLE_EQ(schedule.LearningRate(112591), 0.00004);
}

TEST(Schedule, WithoutWarmUpTheFirstRateIsFull) {
  EXPECT_DOUBLE_EQ(MakeSchedule({.lr_warmup_epochs = 0}, 512, {256, 1}).LearningRate(0), 0.1);
}

TEST(Schedule, ALaunchDoesRunIterAndNeverMoreThanIsLeft) {
  ScheduleConfig config{.num_iter = 3, .run_iter = 2};
  const Schedule epochs = MakeSchedule(config, 100, {10, 1});
  EXPECT_EQ(epochs.EndOfLaunch(0), 20);
  EXPECT_EQ(epochs.EndOfLaunch(20), 30);

  config.iter_unit = IterationUnit::kBatch;
  EXPECT_EQ(MakeSchedule(config, 100, {10, 1}).EndOfLaunch(0), 2);
  config.run_iter = -1;
  EXPECT_EQ(MakeSchedule(config, 100, {10, 1}).EndOfLaunch(1), 3);
}

void ExpectSame(const Schedule& one, const Schedule& other, std::int64_t first) {
  EXPECT_EQ(one.total_steps, other.total_steps);
  EXPECT_EQ(one.EndOfLaunch(first), other.EndOfLaunch(first));
  for (std::int64_t step = first; step < one.total_steps; ++step) {
    ASSERT_EQ(one.LearningRate(step), other.LearningRate(step)) << step;
    ASSERT_EQ(one.EpochOf(step), other.EpochOf(step)) << step;
  }
}

TEST(Schedule, IsTheSameToTheBitForARunThatStoppedAnywhere) {
  for (const RateDecay decay : {RateDecay::kSteps, RateDecay::kCosine, RateDecay::kPolynomial}) {
    for (const IterationUnit unit : {IterationUnit::kEpoch, IterationUnit::kBatch}) {
      ScheduleConfig config;
      config.iter_unit = unit;
      config.num_iter = unit == IterationUnit::kEpoch ? 95 : 2000;
      config.run_iter = 3;
      config.lr_warmup_epochs = 7;
      config.lr_schedule = decay;
      const Schedule schedule = MakeSchedule(config, 1000, {3, 16});  // 20 steps of 48 in an epoch
      for (const std::int64_t step : {0, 1, 139, 140, 777, 1899}) {
        ExpectSame(schedule.From({step, step * 48}), schedule, step);
      }
    }
  }
}

// 1000 images: after 5 epochs of 10 steps, half of the batch.
TEST(Schedule, AnotherBatchGoesOnFromTheSameEpoch) {
  ScheduleConfig config{.num_iter = 10, .lr_warmup_epochs = 8};
  const Position middle{50, 5000};
  const Schedule before = MakeSchedule(config, 1000, {100, 1});
  const Schedule after = MakeSchedule(config, 1000, {50, 1}).From(middle);
  EXPECT_EQ(after.total_steps, 50 + 100);
  EXPECT_EQ(after.EpochOf(50), 5);
  EXPECT_EQ(after.EpochOf(69), 5);
  EXPECT_EQ(after.EpochOf(70), 6);
  EXPECT_DOUBLE_EQ(after.LearningRate(50), before.LearningRate(50) / 2);
  EXPECT_DOUBLE_EQ(after.LearningRate(109), after.rescaled_rate * 159 / 160);
  EXPECT_DOUBLE_EQ(after.LearningRate(110), after.rescaled_rate);
  EXPECT_EQ(after.EndOfLaunch(50), 150);
  EXPECT_EQ(after.PositionAt(150), (Position{150, 10000}));
}

// 28 of 64 images are done: 4 and 2/3 steps of 6.
TEST(Schedule, APlaceBetweenTwoStepsOfTheNewBatchIsAFraction) {
  ScheduleConfig config{.num_iter = 1, .lr_warmup_epochs = 0, .lr_schedule = RateDecay::kCosine};
  const Schedule schedule = MakeSchedule(config, 64, {6, 1}).From({7, 28});
  EXPECT_EQ(schedule.total_steps, 7 + 5);  // to image 58, of the 60 of ten steps
  const double passed = 28.0 / 60;
  EXPECT_DOUBLE_EQ(schedule.LearningRate(7),
                   schedule.rescaled_rate * (1 + std::cos(std::numbers::pi * passed)) / 2);
}

TEST(Schedule, BatchesAreCountedWhateverTheirSize) {
  ScheduleConfig config{.iter_unit = IterationUnit::kBatch, .num_iter = 100, .run_iter = 30};
  const Schedule schedule = MakeSchedule(config, 1000, {50, 1}).From({40, 4000});
  EXPECT_EQ(schedule.total_steps, 100);
  EXPECT_EQ(schedule.EndOfLaunch(40), 70);
  EXPECT_EQ(schedule.EndOfLaunch(90), 100);
  EXPECT_EQ(schedule.EpochOf(40), 4);
}

TEST(Schedule, ARunPastItsEndHasFewerStepsThanItDid) {
  ScheduleConfig config{.num_iter = 2};
  EXPECT_EQ(MakeSchedule(config, 100, {10, 1}).From({30, 300}).total_steps, 20);
  EXPECT_EQ(MakeSchedule(config, 100, {7, 1}).From({20, 200}).total_steps, 20);  // not one of 7
}

TEST(Schedule, RejectsASetSmallerThanOneStep) {
  const std::string rejection = tests::Rejection<Error>(EX_CONFIG, [&] {
    MakeSchedule({}, 63, {16, 4});
  });
  EXPECT_THAT(rejection, AllOf(HasSubstr("63 images"), HasSubstr("4 ranks x 16")));
}

TEST(Schedule, NamesTheSetThatIsTooSmall) {
  EXPECT_THAT(tests::Rejection<Error>([&] {
                MakeSchedule({}, 63, {16, 4}, "validation");
              }),
              StartsWith("the validation set has 63 images"));
}

// Of a batch of 1, which makes many steps an epoch.
TEST(Schedule, TakesAnyReasonableNumberOfSteps) {
  ScheduleConfig config{.iter_unit = IterationUnit::kBatch, .num_iter = 1'000'000'000'000};
  EXPECT_EQ(MakeSchedule(config, kImageNet, {1, 1}).total_steps, config.num_iter);
  ++config.num_iter;
  EXPECT_THROW(MakeSchedule(config, kImageNet, {1, 1}), Error);
}

TEST(Schedule, RejectsALengthBeyondAllReason) {
  ScheduleConfig config{.num_iter = std::int64_t{1} << 62};
  config.run_iter = config.num_iter;
  EXPECT_THROW(MakeSchedule(config, 1000, {10, 1}), Error);
}

}  // namespace
}  // namespace trainer
