// SPDX-License-Identifier: Apache-2.0

#include "bench/report/predicted_scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace bench {
namespace {

// So many ranks with 256 images each, at this speed.
RunRecord Trained(int ranks, double speed, const std::string& arch, const std::string& sums) {
  RunRecord run;
  run.path = std::to_string(ranks);
  run.ranks = ranks;
  run.settings = {{"arch", arch}, {"batch_size", "256"}, {"reduce_precision", sums}};
  for (int step = 20; step < 24; ++step) AddStep(run.measures, step, speed);
  return run;
}

scaling::Machine FourGpus(double adapter_gbits) {
  scaling::Machine machine;
  machine.gpus_per_node = 4;
  machine.inside = "nvlink2";
  machine.adapters = 1;
  machine.adapter_gbits = adapter_gbits;
  return machine;
}

std::vector<std::optional<double>> Predicted(std::vector<std::pair<int, double>> speeds,
                                             const scaling::Machine& machine,
                                             const std::string& arch = "resnet50",
                                             const std::string& sums = "fp32") {
  std::vector<RunRecord> runs;
  for (const auto& [ranks, speed] : speeds) runs.push_back(Trained(ranks, speed, arch, sums));
  ReportModel model = MakeReportModel(std::move(runs), 0);
  AddPredictions(model, machine);
  std::vector<std::optional<double>> predicted;
  for (const ScalingPoint& point : model.scalings.at(0).points)
    predicted.push_back(point.predicted);
  return predicted;
}

TEST(AddPredictions, WhatIsToldComesOutAgainAndTheRestIsPredicted) {
  const auto predicted =
      Predicted({{1, 1000}, {2, 1960}, {4, 3900}, {8, 7600}, {16, 9000}}, FourGpus(100));
  ASSERT_EQ(predicted.size(), 5U);
  EXPECT_NEAR(predicted[0].value(), 1000, 1);
  EXPECT_NEAR(predicted[2].value(), 3900, 4);
  EXPECT_NEAR(predicted[3].value(), 7600, 8);
  // Not 9000, which something slowed that no link explains.
  EXPECT_GT(predicted[4].value(), 14500);
  EXPECT_LT(predicted[4].value(), 15200);
}

TEST(AddPredictions, LinksAndTheTypeOfSumsCount) {
  const std::vector<std::pair<int, double>> speeds = {{1, 1000}, {16, 9000}};
  const double fast = Predicted(speeds, FourGpus(100))[1].value();
  const double slow = Predicted(speeds, FourGpus(2))[1].value();
  const double half = Predicted(speeds, FourGpus(2), "resnet50", "16bit")[1].value();
  EXPECT_LT(slow, 0.8 * fast);
  EXPECT_GT(half, 1.2 * slow);
}

TEST(AddPredictions, OnlyFromOneRankAndOfResNet50) {
  EXPECT_FALSE(Predicted({{4, 3900}, {8, 7600}}, FourGpus(100))[1]);
  EXPECT_FALSE(Predicted({{1, 1000}, {8, 7600}}, FourGpus(100), "resnet18")[1]);
}

}  // namespace
}  // namespace bench
