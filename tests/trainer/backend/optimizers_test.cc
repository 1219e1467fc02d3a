// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/test.h"
#include "tests/trainer/backend/each_backend.h"
#include "tests/trainer/model/fake_batch.h"
#include "trainer/model/network.h"

namespace trainer {
namespace {

constexpr std::size_t kComputeFrom = 1088;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class OptimizerOn : public EachBackend {
 protected:
  OptimizerOn(OptimizerKind kind, const std::vector<ParameterSegment>& segments, Floats start)
      : start_(std::move(start)), op_(device_.backend().MakeOptimizer(kind, segments)) {
    if (device_.backend().compute_type() != DType::kFloat32) copy_ = InComputeType(start_);
    Restart();
  }

  void Restart() {
    weight_ = device_.Upload(start_);
    momentum_ = device_.Upload(Floats(start_.size(), 0));
  }
  UpdateSums Step(const UpdateParameters& call, const Floats& gradient) {
    return Step(call, {.fp32 = device_.Upload(gradient)});
  }
  UpdateSums Step(const UpdateParameters& call, const FlatGradients& gradients) {
    op_->Step(device_.Upload(std::vector<UpdateParameters>{call}), weight_, momentum_, gradients,
              copy_.data, sums_, device_.stream());
    device_.stream().Synchronize();
    return device_.Download<UpdateSums>(sums_, 1).front();
  }
  // The same values, those from kComputeFrom on in the compute type; the places of the others are
  // poisoned.
  FlatGradients OfTwoTypes(const Floats& gradient) {
    Floats fp32 = gradient;
    std::fill(fp32.begin() + kComputeFrom, fp32.end(), kNan);
    Floats compute = gradient;
    std::fill(compute.begin(), compute.begin() + kComputeFrom, kNan);
    return {device_.Upload(fp32), InComputeType(compute).data, kComputeFrom};
  }
  // By a gradient with a number that is not finite in one of the `places`.
  void ExpectNoUpdate(const std::vector<std::size_t>& places) {
    const UpdateParameters call{.learning_rate = 1, .momentum_factor = 0.9F, .weight_decay = 0.1F};
    const Floats good(start_.size(), 1);
    const float infinity = std::numeric_limits<float>::infinity();
    for (const float bad : {kNan, infinity, -infinity}) {
      for (const std::size_t where : places) {
        Floats gradient = good;
        gradient[where] = bad;
        EXPECT_EQ(Step(call, gradient).nonfinite, 1) << bad << " at " << where;
        EXPECT_EQ(Weight(), start_);
        EXPECT_EQ(Momentum(), Floats(start_.size(), 0));
      }
    }
    EXPECT_EQ(Step(call, good).nonfinite, 0);
    EXPECT_NE(Weight(), start_);
  }
  // After one that was left out and that nobody has judged; and one after a good one.
  void ExpectNoUpdateAfterOneLeftOut() {
    UpdateParameters call{.learning_rate = 1, .momentum_factor = 0.9F, .weight_decay = 0.1F};
    const Floats good(start_.size(), 1);
    for (const float nonfinite : {1.0F, 0.0F}) {
      call.before = device_.Upload(std::vector<UpdateSums>{
          {.sum_of_squares = 2, .nonfinite = nonfinite, .gradient_squares = 3}});
      const UpdateSums sums = Step(call, good);
      EXPECT_EQ(sums.nonfinite, nonfinite);
      EXPECT_GT(sums.gradient_squares, 3);
      EXPECT_EQ(Weight() == start_, nonfinite != 0);
      EXPECT_EQ(Momentum() == Floats(start_.size(), 0), nonfinite != 0);
    }
    Floats bad = good;
    bad[0] = kNan;
    EXPECT_EQ(Step(call, bad).nonfinite, 1);
  }
  void ExpectUntouched(const std::vector<std::size_t>& gaps) {
    for (const std::size_t gap : gaps) {
      EXPECT_EQ(Weight()[gap], start_[gap]) << gap;
      EXPECT_EQ(Momentum()[gap], 0) << gap;
    }
  }
  Floats Weight() { return device_.Download<float>(weight_, start_.size()); }
  Floats Momentum() { return device_.Download<float>(momentum_, start_.size()); }
  Tensor InComputeType(const Floats& values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return device_.Make(RowMajor({count}, device_.backend().compute_type()), values);
  }

  const Floats start_;
  std::unique_ptr<Optimizer> op_;
  Tensor copy_;
  float* weight_ = nullptr;
  float* momentum_ = nullptr;
  UpdateSums* sums_ = static_cast<UpdateSums*>(device_.Scratch(sizeof(UpdateSums)));
};

constexpr std::size_t kCount = 3000;
// With gaps, as alignment leaves them, a segment without decay, and one that begins anywhere.
const std::vector<ParameterSegment> kSegments{
    {0, 1000, true}, {1024, 37, false}, {1088, 904, true}, {1995, 1005, true}};

class SgdOn : public OptimizerOn {
 protected:
  SgdOn() : OptimizerOn(OptimizerKind::kSgd, kSegments, RandomFloats(kCount, 1)) {}
};

TEST_P(SgdOn, FollowsTheFormulaOverSeveralSteps) {
  std::vector<double> weight(start_.begin(), start_.end());
  std::vector<double> momentum(kCount, 0);
  for (int step = 0; step < 5; ++step) {
    const UpdateParameters call{.learning_rate = 0.1F / static_cast<float>(step + 1),
                                .momentum_factor = 0.9F,
                                .weight_decay = 0.01F,
                                .gradient_scale = 1.0F / 128};
    const Floats gradient = RandomFloats(kCount, 10 + static_cast<std::uint64_t>(step));
    double squares = 0;
    double gradient_squares = 0;
    for (const ParameterSegment& segment : kSegments) {
      for (std::size_t i = segment.begin; i < segment.begin + segment.count; ++i) {
        if (segment.decay) squares += weight[i] * weight[i];
        gradient_squares += double{gradient[i]} * gradient[i];
        const double decay = segment.decay ? call.weight_decay * weight[i] : 0;
        momentum[i] =
            call.momentum_factor * momentum[i] + call.gradient_scale * gradient[i] + decay;
        weight[i] -= call.learning_rate * momentum[i];
      }
    }
    const UpdateSums sums = Step(call, gradient);
    EXPECT_NEAR(sums.sum_of_squares, squares, 1e-4 * squares);
    EXPECT_NEAR(sums.gradient_squares, gradient_squares, 1e-4 * gradient_squares);
    EXPECT_EQ(sums.nonfinite, 0);
  }
  const Floats expected(weight.begin(), weight.end());
  EXPECT_LE(RelativeError(Weight(), expected), 1e-5);
  EXPECT_LE(RelativeError(Momentum(), Floats(momentum.begin(), momentum.end())), 1e-5);
  if (copy_) {
    const Floats copy = device_.Export(copy_);
    for (const ParameterSegment& segment : kSegments) {
      for (std::size_t i = segment.begin; i < segment.begin + segment.count; ++i) {
        EXPECT_NEAR(copy[i], expected[i], Tolerance() * std::abs(expected[i]));
      }
    }
  }
}

TEST_P(SgdOn, LeavesTheGapsBetweenSegmentsAlone) {
  Step({.learning_rate = 1, .momentum_factor = 1, .weight_decay = 1}, Floats(kCount, 1));
  ExpectUntouched({1000, 1023, 1061, 1087, 1992, 1994});
  EXPECT_NE(Weight()[1060], start_[1060]);
}

TEST_P(SgdOn, UpdatesNothingAfterAGradientThatIsNotFinite) {
  ExpectNoUpdate({0, 1060, kCount - 1});
}

TEST_P(SgdOn, UpdatesNothingAfterAnUpdateThatWasLeftOut) { ExpectNoUpdateAfterOneLeftOut(); }

TEST_P(SgdOn, TakesGradientsOfTheComputeTypeBesideThoseInFp32) {
  if (!copy_) GTEST_SKIP() << "computes in fp32";
  const UpdateParameters call{
      .learning_rate = 0.1F, .momentum_factor = 0.9F, .gradient_scale = 0.5F};
  Floats gradient = RandomFloats(kCount, 10);
  const UpdateSums sums = Step(call, OfTwoTypes(gradient));
  EXPECT_EQ(sums.nonfinite, 0);
  EXPECT_TRUE(std::isfinite(sums.gradient_squares));
  const Floats weight = Weight();
  const Floats momentum = Momentum();
  for (const std::size_t i :
       {std::size_t{0}, kComputeFrom - 64, kComputeFrom, std::size_t{1995}, kCount - 1}) {
    EXPECT_FLOAT_EQ(momentum[i], 0.5F * gradient[i]) << i;
    EXPECT_FLOAT_EQ(weight[i], start_[i] - 0.1F * momentum[i]) << i;
  }
  for (const std::size_t where : {std::size_t{0}, kComputeFrom, kCount - 1}) {
    gradient[where] = std::numeric_limits<float>::infinity();
    EXPECT_EQ(Step(call, OfTwoTypes(gradient)).nonfinite, 1) << where;
    EXPECT_EQ(Weight(), weight);
    gradient[where] = 1;
  }
}

TEST_P(SgdOn, LooksAtGradientsOfSegmentsOnly) {
  Floats gradient(kCount, 1);
  gradient[1010] = kNan;
  const UpdateSums sums = Step({.learning_rate = 1}, gradient);
  EXPECT_EQ(sums.nonfinite, 0);
  EXPECT_TRUE(std::isfinite(sums.gradient_squares));
}

INSTANTIATE_ON_EACH_BACKEND(SgdOn);

// LARS on every back end, against an implementation in fp64 that is written here by the formulas of
// backend/ops.h and of You, Gitman, Ginsburg 2017 (arXiv 1708.03888), and knows no other code.

constexpr std::size_t kLarsCount = 27000;
// With gaps; one that begins anywhere, and one that is longer than what a thread or a block takes.
const std::vector<ParameterSegment> kTensors{
    {0, 1000, true}, {1024, 37, false}, {1088, 904, true}, {1995, 20005, true}, {22016, 4900, true},
};
constexpr std::size_t kZeroTensor = 2;        // starts as zeros
constexpr std::size_t kNoGradientTensor = 4;  // never has a gradient

// Weights of the usual size, apart from the tensor of zeros.
Floats StartWeights() {
  Floats weights = RandomFloats(kLarsCount, 1);
  for (float& weight : weights) weight *= 0.05F;
  const ParameterSegment& zeros = kTensors[kZeroTensor];
  std::fill_n(weights.begin() + static_cast<std::ptrdiff_t>(zeros.begin), zeros.count, 0.0F);
  return weights;
}

Floats GradientOf(std::uint64_t step) {
  Floats gradient = RandomFloats(kLarsCount, 10 + step);
  const ParameterSegment& none = kTensors[kNoGradientTensor];
  std::fill_n(gradient.begin() + static_cast<std::ptrdiff_t>(none.begin), none.count, 0.0F);
  return gradient;
}

// A tensor by the book.
struct PlainLars {
  std::vector<double> w;
  std::vector<double> v;

  static double Norm(const std::vector<double>& x) {
    double sum = 0;
    for (const double value : x) sum += value * value;
    return std::sqrt(sum);
  }
  void Step(const UpdateParameters& call, bool is_weight, const float* gradient) {
    std::vector<double> g(w.size());
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = double{call.gradient_scale} * gradient[i];
    double ratio = 1;
    const double norm = Norm(w);
    const double of_g = Norm(g);
    if (is_weight && norm > 0 && of_g > 0) ratio = 0.001 * norm / (of_g + call.weight_decay * norm);
    for (std::size_t i = 0; i < g.size(); ++i) {
      if (is_weight) g[i] += call.weight_decay * w[i];
      v[i] = call.momentum_factor * v[i] - call.learning_rate * ratio * g[i];
      w[i] += v[i];
    }
  }
};

// |a - b| / |b| of one tensor.
double DistanceOf(const Floats& flat, const ParameterSegment& tensor,
                  const std::vector<double>& b) {
  double distance = 0;
  for (std::size_t i = 0; i < tensor.count; ++i) {
    distance += std::pow(flat[tensor.begin + i] - b[i], 2);
  }
  return std::sqrt(distance) / PlainLars::Norm(b);
}

class LarsOn : public OptimizerOn {
 protected:
  LarsOn() : OptimizerOn(OptimizerKind::kLars, kTensors, StartWeights()) {}
};

// With a warm-up, a decay and a loss scale that changes.
TEST_P(LarsOn, IsTheFormulaInFp64OverFiftySteps) {
  std::vector<PlainLars> expected;
  for (const ParameterSegment& tensor : kTensors) {
    const auto begin = start_.begin() + static_cast<std::ptrdiff_t>(tensor.begin);
    expected.push_back({{begin, begin + static_cast<std::ptrdiff_t>(tensor.count)},
                        std::vector<double>(tensor.count, 0)});
  }
  for (int step = 0; step < 50; ++step) {
    const double rate = step < 10 ? step / 10.0 : std::pow(1 - (step - 10) / 40.0, 2);
    const UpdateParameters call{.learning_rate = static_cast<float>(10 * rate),
                                .momentum_factor = 0.9F,
                                .weight_decay = 2e-4F,
                                .gradient_scale = step < 25 ? 1.0F / 128 : 1.0F / 256};
    const Floats gradient = GradientOf(static_cast<std::uint64_t>(step));
    double squares = 0;
    double gradient_squares = 0;
    for (std::size_t t = 0; t < kTensors.size(); ++t) {
      if (kTensors[t].decay) squares += std::pow(PlainLars::Norm(expected[t].w), 2);
      for (std::size_t i = 0; i < kTensors[t].count; ++i) {
        gradient_squares += std::pow(gradient[kTensors[t].begin + i], 2);
      }
    }
    const UpdateSums sums = Step(call, gradient);
    EXPECT_NEAR(sums.sum_of_squares, squares, 1e-5 * squares);
    EXPECT_NEAR(sums.gradient_squares, gradient_squares, 1e-5 * gradient_squares);
    EXPECT_EQ(sums.nonfinite, 0);
    for (std::size_t t = 0; t < kTensors.size(); ++t) {
      expected[t].Step(call, kTensors[t].decay, gradient.data() + kTensors[t].begin);
    }
  }
  const Floats weight = Weight();
  const Floats momentum = Momentum();
  for (std::size_t t = 0; t < kTensors.size(); ++t) {
    EXPECT_LE(DistanceOf(weight, kTensors[t], expected[t].w), 1e-6) << "tensor " << t;
    // The step is taken off.
    std::vector<double> taken;
    for (const double value : expected[t].v) taken.push_back(-value);
    EXPECT_LE(DistanceOf(momentum, kTensors[t], taken), 2e-6) << "tensor " << t;
  }
  if (copy_) {
    const Floats copy = device_.Export(copy_);
    for (const std::size_t i : {std::size_t{0}, std::size_t{1060}, std::size_t{21999}}) {
      EXPECT_NEAR(copy[i], weight[i], Tolerance() * std::abs(weight[i]) + 1e-7);
    }
  }
}

TEST_P(LarsOn, RepeatsBitForBit) {
  const UpdateParameters call{.learning_rate = 5, .momentum_factor = 0.9F, .weight_decay = 1e-4F};
  std::vector<Floats> ends;
  for (int run = 0; run < 2; ++run) {
    Restart();
    for (std::uint64_t step = 0; step < 3; ++step) Step(call, GradientOf(step));
    ends.push_back(Weight());
  }
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_NE(ends[0], start_);
}

// The ratio takes a gradient's size away, so that none of it matters where there is no decay.
TEST_P(LarsOn, MovesAWeightByItsNormWhateverTheGradientsSize) {
  const Floats gradient = GradientOf(0);
  Floats larger = gradient;
  for (float& value : larger) value *= 1024;
  Step({.learning_rate = 1}, gradient);
  const Floats weight = Weight();
  Restart();
  Step({.learning_rate = 1}, larger);
  const Floats other = Weight();
  EXPECT_EQ(other[0], weight[0]);
  EXPECT_EQ(other[21000], weight[21000]);
  EXPECT_NE(other[1030], weight[1030]) << "a bias has no ratio";
}

TEST_P(LarsOn, LeavesTheGapsBetweenTensorsAlone) {
  Floats gradient(kLarsCount, 1);
  gradient[1010] = kNan;
  const UpdateSums sums = Step({.learning_rate = 1, .momentum_factor = 1}, gradient);
  EXPECT_EQ(sums.nonfinite, 0);
  ExpectUntouched({1000, 1023, 1061, 1087, 1992, 1994, 22000, 22015});
  EXPECT_NE(Weight()[21999], start_[21999]);
}

TEST_P(LarsOn, UpdatesNothingAfterAGradientThatIsNotFinite) { ExpectNoUpdate({0, 1060, 21999}); }

TEST_P(LarsOn, UpdatesNothingAfterAnUpdateThatWasLeftOut) { ExpectNoUpdateAfterOneLeftOut(); }

TEST_P(LarsOn, TakesGradientsOfTheComputeTypeBesideThoseInFp32) {
  if (!copy_) GTEST_SKIP() << "computes in fp32";
  const UpdateParameters call{.learning_rate = 3, .momentum_factor = 0.9F, .weight_decay = 1e-4F};
  // Values that all types hold.
  Floats gradient(kLarsCount);
  for (std::size_t i = 0; i < kLarsCount; ++i) gradient[i] = static_cast<float>(i % 7) - 3;
  const UpdateSums expected_sums = Step(call, gradient);
  const Floats expected = Weight();
  Restart();
  const UpdateSums sums = Step(call, OfTwoTypes(gradient));
  EXPECT_EQ(sums.nonfinite, 0);
  EXPECT_EQ(sums.gradient_squares, expected_sums.gradient_squares);
  EXPECT_EQ(Weight(), expected);
}

// Back ends pad filters: those of the first layer have three channels.  What is there stays zero,
// as long as gradients and updates leave it so.
TEST_P(LarsOn, WhatPadsATensorOfANetworkChangesNoNorm) {
  Backend& backend = device_.backend();
  Stream& stream = device_.stream();
  Network network(backend, NetworkSpec{"resnet_tiny", 4, 32, 32, 10, 0.1F});
  Initialize(network, {}, stream);
  FakeBatch batch(backend, 4, 32, 10);
  const auto lars = backend.MakeOptimizer(OptimizerKind::kLars, network.tensors());
  auto* call = device_.Upload(std::vector<UpdateParameters>{
      {.learning_rate = 1, .momentum_factor = 0.9F, .weight_decay = 1e-4F}});
  auto* loss = static_cast<LossSums*>(device_.Scratch(sizeof(LossSums)));
  for (int step = 0; step < 2; ++step) {
    network.Forward(Mode::kTraining, batch.input(), loss, stream);
    network.Backward(stream, [](std::size_t) {});
    lars->Step(call, network.weights(), network.momentum(), network.gradients(),
               network.compute_weights(), sums_, stream);
  }
  stream.Synchronize();
  const Floats flat = device_.Download<float>(network.weights(), network.elements());
  std::size_t tensor = 0;
  for (const Parameter& parameter : network.parameters()) {
    if (parameter.spec.statistic) continue;
    ++tensor;
    double in_memory = 0;
    for (std::size_t i = 0; i < parameter.count; ++i) {
      in_memory += std::pow(flat[parameter.begin + i], 2);
    }
    double of_values = 0;
    for (const float value : network.Export(Network::Part::kValue, parameter, stream)) {
      of_values += double{value} * value;
    }
    EXPECT_NEAR(in_memory, of_values, 1e-9 * of_values) << parameter.name;
  }
  EXPECT_EQ(tensor, network.tensors().size());
}

INSTANTIATE_ON_EACH_BACKEND(LarsOn);

}  // namespace
}  // namespace trainer
