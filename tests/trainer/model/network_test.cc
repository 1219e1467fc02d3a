// SPDX-License-Identifier: Apache-2.0

#include "trainer/model/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "tests/trainer/model/made_up_batch.h"
#include "trainer/backend/registry.h"
#include "trainer/model/init.h"

namespace trainer {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kSize = 32;
constexpr std::int64_t kClasses = 10;
constexpr auto kValue = Network::Part::kValue;

const Network::GradientsReady kIgnore = [](std::size_t) {};

class NetworkTest : public testing::Test {
 protected:
  NetworkTest() { Initialize(network_, {}, *stream_); }

  double LossSum(Mode mode) {
    LossSums sums{};
    network_.Forward(mode, batch_.input(), &sums, *stream_);
    return sums.loss;
  }

  const Parameter& Find(const std::string& name) const {
    for (const Parameter& parameter : network_.parameters()) {
      if (parameter.name == name) return parameter;
    }
    throw std::out_of_range(name);
  }

  std::unique_ptr<Backend> backend_ = MakeBackend("reference", {});
  std::unique_ptr<Stream> stream_ = backend_->MakeStream();
  MadeUpBatch batch_{*backend_, kBatch, kSize, kClasses};
  Network network_{*backend_, {"resnet_tiny", kBatch, kSize, kSize, kClasses, 0}};
};

TEST_F(NetworkTest, ZeroInitResidualZeroesTheLastScaleOfEachBottleneckAlone) {
  Initialize(network_, {.zero_init_residual = true}, *stream_);
  const auto norm = [&](const std::string& name) {
    double sum = 0;
    for (const float value : network_.Export(kValue, Find(name), *stream_)) sum += std::abs(value);
    return sum;
  };
  EXPECT_EQ(norm("layer1.0.bn3.weight"), 0);
  EXPECT_EQ(norm("layer4.0.bn3.weight"), 0);
  EXPECT_GT(norm("layer1.0.bn2.weight"), 0);
  EXPECT_GT(norm("layer1.0.conv3.weight"), 0);
}

TEST(Network, Resnet50HasTheNamesShapesAndSizeOfTorchvision) {
  const auto backend = MakeBackend("reference", {});
  const Network network(*backend, {"resnet50", 1, 32, 32, 1000, 0});
  std::int64_t trained = 0;
  std::int64_t statistics = 0;
  std::map<std::string, Shape> shapes;
  for (const Parameter& p : network.parameters()) {
    (p.spec.statistic ? statistics : trained) += p.spec.shape.elements();
    shapes[p.name] = p.spec.shape;
  }
  EXPECT_EQ(trained, 25557032);
  EXPECT_EQ(statistics, 53120);
  EXPECT_EQ(network.parameters().size(), 267);
  EXPECT_EQ(network.parameters()[0].name, "conv1.weight");
  EXPECT_EQ(network.parameters()[4].name, "bn1.running_var");
  EXPECT_EQ(network.parameters()[265].name, "fc.weight");
  EXPECT_EQ(network.parameters()[266].name, "fc.bias");
  EXPECT_EQ(shapes.at("layer1.0.downsample.0.weight"), (Shape{256, 64, 1, 1}));
  EXPECT_EQ(shapes.at("layer2.0.conv2.weight"), (Shape{128, 128, 3, 3}));
  EXPECT_EQ(shapes.at("layer4.2.bn3.running_mean"), (Shape{2048}));
}

TEST_F(NetworkTest, DecayAppliesToEverythingButBatchNorm) {
  for (const Parameter& p : network_.parameters()) {
    const bool batch_norm =
        p.name.find("bn") != std::string::npos || p.name.find("downsample.1") != std::string::npos;
    EXPECT_EQ(p.spec.decay, !batch_norm) << p.name;
  }
}

TEST_F(NetworkTest, ANetworkThatKnowsNothingHasTheLossOfAGuess) {
  const Parameter& fc = Find("fc.weight");
  network_.Import(kValue, fc,
                  std::vector<float>(static_cast<std::size_t>(fc.spec.shape.elements())), *stream_);
  EXPECT_NEAR(LossSum(Mode::kTraining) / kBatch, std::log(kClasses), 1e-5);
}

TEST_F(NetworkTest, ImportThenExportGivesTheSameBits) {
  for (const Parameter& parameter : network_.parameters()) {
    std::vector<float> values(static_cast<std::size_t>(parameter.spec.shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0F / static_cast<float>(i + 3);
    network_.Import(kValue, parameter, values, *stream_);
    EXPECT_EQ(network_.Export(kValue, parameter, *stream_), values) << parameter.name;
  }
}

TEST_F(NetworkTest, GradientIsTheSlopeOfTheLoss) {
  LossSum(Mode::kTraining);
  network_.Backward(*stream_, kIgnore);
  // Along the gradient the mean loss rises by |gradient|^2 for each unit.
  std::vector<std::vector<float>> gradients;
  double squares = 0;
  for (const Parameter& p : network_.parameters()) {
    gradients.push_back(p.spec.statistic
                            ? std::vector<float>()
                            : network_.ExportGradient(network_.gradients(), p, *stream_));
    for (const float g : gradients.back()) squares += double{g} * g;
  }
  ASSERT_GT(squares, 0);

  const auto move = [&](double distance) {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].empty()) continue;
      const Parameter& p = network_.parameters()[i];
      std::vector<float> values = network_.Export(kValue, p, *stream_);
      for (std::size_t k = 0; k < values.size(); ++k) {
        values[k] += static_cast<float>(distance * gradients[i][k]);
      }
      network_.Import(kValue, p, values, *stream_);
    }
  };
  const double step = 2e-3 / squares;
  move(step);
  const double up = LossSum(Mode::kTraining) / kBatch;
  move(-2 * step);
  const double down = LossSum(Mode::kTraining) / kBatch;
  EXPECT_NEAR((up - down) / (2 * step) / squares, 1, 0.02);
}

TEST_F(NetworkTest, GradientsAreCompleteWhenReportedReady) {
  LossSum(Mode::kTraining);
  std::vector<std::size_t> reported;
  std::vector<std::vector<float>> when_reported;
  const float* const gradients = network_.gradients().fp32;
  const float* const end = gradients + network_.elements();
  network_.Backward(*stream_, [&](std::size_t complete_from) {
    reported.push_back(complete_from);
    when_reported.emplace_back(gradients + complete_from, end);
  });
  EXPECT_EQ(reported.size(), 6);  // head, four bottlenecks, stem
  EXPECT_TRUE(std::is_sorted(reported.rbegin(), reported.rend()));
  EXPECT_EQ(reported.back(), 0);
  for (std::size_t i = 0; i < reported.size(); ++i) {
    EXPECT_TRUE(std::equal(gradients + reported[i], end, when_reported[i].begin()));
  }
}

TEST_F(NetworkTest, LossScaleMultipliesGradientsOnly) {
  const double loss = LossSum(Mode::kTraining);
  network_.Backward(*stream_, kIgnore);
  const std::vector<float> plain =
      network_.ExportGradient(network_.gradients(), Find("fc.weight"), *stream_);

  batch_.loss().diff_scale = 256;
  EXPECT_EQ(LossSum(Mode::kTraining), loss);
  network_.Backward(*stream_, kIgnore);
  const std::vector<float> scaled =
      network_.ExportGradient(network_.gradients(), Find("fc.weight"), *stream_);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(scaled[i], 256 * plain[i]);
}

TEST_F(NetworkTest, OnlyTrainingMovesTheRunningStatistics) {
  const Parameter& mean = Find("layer2.0.bn2.running_mean");
  const std::vector<float> before = network_.Export(kValue, mean, *stream_);
  LossSum(Mode::kInference);
  LossSum(Mode::kFrozen);
  network_.Backward(*stream_, kIgnore);
  EXPECT_EQ(network_.Export(kValue, mean, *stream_), before);
  LossSum(Mode::kTraining);
  EXPECT_NE(network_.Export(kValue, mean, *stream_), before);
}

TEST_F(NetworkTest, LossSumsAddUpAndCountValidSamples) {
  LossSums sums{};
  network_.Forward(Mode::kInference, batch_.input(), &sums, *stream_);
  batch_.loss().valid = 1;
  network_.Forward(Mode::kInference, batch_.input(), &sums, *stream_);
  EXPECT_EQ(sums.samples, kBatch + 1);
}

TEST(NetworkPlan, DescribesItsMemory) {
  const auto backend = MakeBackend("reference", {});
  const NetworkPlan plan = PlanNetwork(*backend, {"resnet_tiny", 2, 32, 32, 4, 0});
  const std::vector<std::string> rows = plan.Describe();
  EXPECT_THAT(rows, testing::Contains(HasSubstr("arena")));
  EXPECT_THAT(rows, testing::Contains(testing::AllOf(HasSubstr("layer4.0 diff_dst"),
                                                     HasSubstr("in use from 6 to 7"))));
}

// Its parts are all that the network then allocates.
TEST(NetworkPlan, HasTheBytesOfItsMemories) {
  const auto backend = MakeBackend("reference", {});
  const NetworkPlan plan = PlanNetwork(*backend, {"resnet_tiny", 2, 32, 32, 4, 0});
  const NetworkBytes bytes = plan.bytes();
  const std::size_t values = plan.layout.elements * sizeof(float);
  EXPECT_EQ(bytes.momentum, values);
  EXPECT_EQ(bytes.gradients, values);
  EXPECT_EQ(bytes.weights, values + plan.layout.statistic_elements * sizeof(float));
  EXPECT_EQ(bytes.activations + bytes.workspace, plan.arena.total_bytes());
  EXPECT_GT(bytes.workspace, 0U);
  EXPECT_GT(bytes.activations, bytes.workspace);
  EXPECT_EQ(bytes.total(), bytes.weights + 2 * values + plan.arena.total_bytes());
}

}  // namespace
}  // namespace trainer
