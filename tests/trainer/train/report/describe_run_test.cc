// SPDX-License-Identifier: Apache-2.0

#include "trainer/train/report/describe_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/train/training_run.h"

namespace trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

TEST(DescribeRun, IsOfATraining) {
  const std::vector<std::string> rows = DescribeRun(SmallConfig("unused"), 2, 64);
  EXPECT_THAT(rows, Contains(HasSubstr("8 images (2 ranks x 4)")));
  EXPECT_THAT(rows, Contains(HasSubstr("6 in 1 epochs of 8")));
  EXPECT_THAT(rows, Contains(StartsWith("learning rate ")));
}

TEST(DescribeRun, NamesDecayAndOptimizer) {
  TrainConfig config = SmallConfig("unused");
  EXPECT_THAT(DescribeRun(config, 2, 64), Not(Contains(StartsWith("optimizer "))));
  config.optimizer = OptimizerKind::kLars;
  config.schedule.lr_schedule = RateDecay::kPolynomial;
  config.schedule.lr_scaling = RateScaling::kNone;
  const std::vector<std::string> rows = DescribeRun(config, 2, 64);
  EXPECT_THAT(rows, Contains("learning rate     3 after 0 steps of warm-up, polynomial decay to "
                             "0.0001 in 6 steps"));
  EXPECT_THAT(rows, Contains("optimizer         LARS: each tensor's rate goes by its norms"));
}

TEST(DescribeRun, IsOfWhatDoesNotTrain) {
  TrainConfig config = SmallConfig("unused");
  config.mode = RunMode::kEvaluate;
  config.accumulate = 4;                                            // of trainings alone
  const std::vector<std::string> rows = DescribeRun(config, 2, 5);  // less than a batch of 8
  EXPECT_THAT(rows, SizeIs(3));
  EXPECT_THAT(rows, Contains(HasSubstr("8 images (2 ranks x 4)")));
  EXPECT_THAT(rows, Contains("steps             1 for 5 images"));
  config.mode = RunMode::kInferenceBenchmark;
  EXPECT_THAT(DescribeRun(config, 2, 64), Not(Contains(StartsWith("learning rate "))));
}

}  // namespace
}  // namespace trainer
