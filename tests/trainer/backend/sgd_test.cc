// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/trainer/backend/each_backend.h"

namespace trainer {
namespace {

constexpr std::size_t kCount = 3000;
constexpr std::size_t kComputeFrom = 1088;
// With gaps, as alignment leaves them, a segment without decay, and one that begins anywhere.
const std::vector<ParameterSegment> kSegments{
    {0, 1000, true}, {1024, 37, false}, {1088, 904, true}, {1995, 1005, true}};

class SgdOn : public EachBackend {
 protected:
  SgdOn() : op_(device_.backend().MakeOptimizer(OptimizerKind::kSgd, kSegments)) {
    if (device_.backend().compute_type() != DType::kFloat32) {
      copy_ = device_.Make(RowMajor({kCount}, device_.backend().compute_type()));
    }
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
    std::fill(fp32.begin() + kComputeFrom, fp32.end(), std::numeric_limits<float>::quiet_NaN());
    Floats compute = gradient;
    std::fill(compute.begin(), compute.begin() + kComputeFrom,
              std::numeric_limits<float>::quiet_NaN());
    const Tensor tensor =
        device_.Make(RowMajor({kCount}, device_.backend().compute_type()), compute);
    return {device_.Upload(fp32), tensor.data, kComputeFrom};
  }
  Floats Weight() { return device_.Download<float>(weight_, kCount); }
  Floats Momentum() { return device_.Download<float>(momentum_, kCount); }

  const Floats start_ = RandomFloats(kCount, 1);
  std::unique_ptr<Optimizer> op_;
  Tensor copy_;
  float* weight_ = device_.Upload(start_);
  float* momentum_ = device_.Upload(Floats(kCount, 0));
  UpdateSums* sums_ = static_cast<UpdateSums*>(device_.Scratch(sizeof(UpdateSums)));
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
  for (const std::size_t gap : {1000, 1023, 1061, 1087, 1992, 1994}) {
    EXPECT_EQ(Weight()[gap], start_[gap]);
    EXPECT_EQ(Momentum()[gap], 0);
  }
  EXPECT_NE(Weight()[1060], start_[1060]);
}

TEST_P(SgdOn, UpdatesNothingAfterAGradientThatIsNotFinite) {
  const UpdateParameters call{.learning_rate = 1, .momentum_factor = 0.9F, .weight_decay = 0.1F};
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
    for (const std::size_t where : {std::size_t{0}, std::size_t{1060}, kCount - 1}) {
      Floats gradient(kCount, 1);
      gradient[where] = bad;
      EXPECT_EQ(Step(call, gradient).nonfinite, 1) << bad << " at " << where;
      EXPECT_EQ(Weight(), start_);
      EXPECT_EQ(Momentum(), Floats(kCount, 0));
    }
  }
  EXPECT_EQ(Step(call, Floats(kCount, 1)).nonfinite, 0);
  EXPECT_NE(Weight(), start_);
}

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
  gradient[1010] = std::numeric_limits<float>::quiet_NaN();
  const UpdateSums sums = Step({.learning_rate = 1}, gradient);
  EXPECT_EQ(sums.nonfinite, 0);
  EXPECT_TRUE(std::isfinite(sums.gradient_squares));
}

INSTANTIATE_ON_EACH_BACKEND(SgdOn);

}  // namespace
}  // namespace trainer
