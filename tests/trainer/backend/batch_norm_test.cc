// SPDX-License-Identifier: Apache-2.0

#include "tests/support/test.h"
#include "tests/trainer/backend/each_backend.h"

namespace trainer {
namespace {

using ::testing::FloatNear;

class BatchNormOn : public EachBackend {
 protected:
  // Two channels; scale 2 and 1, shift 1 and 0, running mean 10 and 0, running variance 4 and 1.
  Floats Forward(Mode mode, const Shape& shape, const Floats& values, bool relu = false) {
    const Tensor src = device_.Make(device_.Images(shape), values);
    const auto op = device_.backend().MakeBatchNorm({src.desc, false, relu, 1e-5F, 0.75F});
    parameters_ = {device_.Make({2}, {2, 1}), device_.Make({2}, {1, 0}), device_.Make({2}, {10, 0}),
                   device_.Make({2}, {4, 1})};
    const Tensor dst = device_.Make(src.desc);
    void* saved = mode == Mode::kInference ? nullptr : device_.Scratch(op->saved_bytes());
    op->Forward(mode, src, {}, parameters_, dst, saved, device_.Scratch(op->workspace_bytes()),
                device_.stream());
    return device_.Export(dst);
  }
  Floats RunningMean() { return device_.Export(parameters_.running_mean); }
  Floats RunningVariance() { return device_.Export(parameters_.running_variance); }

  BatchNormParameters parameters_;
};

TEST_P(BatchNormOn, NormalizesByTheBatchOverSamplesAndPixels) {
  // Channel 0: 1, 3 and 5, 7: mean 4, variance 5.  Channel 1: 0, 0 and 0, 4: mean 1, variance 3.
  const Floats dst = Forward(Mode::kTraining, {2, 2, 1, 2}, {1, 3, 0, 0, 5, 7, 0, 4});
  const double root5 = std::sqrt(5);
  const double root3 = std::sqrt(3);
  const double expected[] = {1 - 6 / root5, 1 - 2 / root5, -1 / root3, -1 / root3,
                             1 + 2 / root5, 1 + 6 / root5, -1 / root3, 3 / root3};
  for (std::size_t i = 0; i < dst.size(); ++i) {
    EXPECT_NEAR(dst[i], expected[i], 5 * Tolerance()) << i;
  }
}

TEST_P(BatchNormOn, KeepsRunningStatisticsWithTheUnbiasedVariance) {
  Forward(Mode::kTraining, {2, 2, 1, 2}, {1, 3, 0, 0, 5, 7, 0, 4});
  const float e = 1e-5F;
  EXPECT_THAT(RunningMean(),
              ElementsAre(FloatNear(0.75F * 10 + 0.25F * 4, e), FloatNear(0.25F * 1, e)));
  EXPECT_THAT(RunningVariance(), ElementsAre(FloatNear(0.75F * 4 + 0.25F * 5 * 4 / 3, e),
                                             FloatNear(0.75F * 1 + 0.25F * 3 * 4 / 3, e)));
}

TEST_P(BatchNormOn, OfASingleValuePerChannelHasVarianceZero) {
  EXPECT_THAT(Forward(Mode::kTraining, {1, 2, 1, 1}, {5, 7}), ElementsAre(1, 0));
  EXPECT_THAT(RunningVariance(), ElementsAre(FloatNear(3, 1e-5F), FloatNear(0.75F, 1e-5F)));
}

TEST_P(BatchNormOn, UsesAndKeepsRunningStatisticsOutsideTraining) {
  for (const Mode mode : {Mode::kFrozen, Mode::kInference}) {
    const Floats dst = Forward(mode, {1, 2, 1, 2}, {10, 12, -1, 2});
    const auto e = static_cast<float>(5 * Tolerance());
    EXPECT_THAT(dst,
                ElementsAre(FloatNear(1, e), FloatNear(3, e), FloatNear(-1, e), FloatNear(2, e)));
    EXPECT_THAT(RunningMean(), ElementsAre(10, 0));
    EXPECT_THAT(RunningVariance(), ElementsAre(4, 1));
  }
}

TEST_P(BatchNormOn, ReluCutsBelowZero) {
  const auto e = static_cast<float>(5 * Tolerance());
  EXPECT_THAT(Forward(Mode::kFrozen, {1, 2, 1, 2}, {2, 12, -1, 2}, true),
              ElementsAre(0, FloatNear(3, e), 0, FloatNear(2, e)));
}

// Where y is exactly 0 there is no gradient.
TEST_P(BatchNormOn, ReluPassesNothingAtZero) {
  const TensorDesc desc = device_.Images({1, 2, 1, 2});
  const auto channels = [&](float value) { return device_.Make({2}, {value, value}); };
  const BatchNormParameters parameters = {channels(1), channels(0), channels(3), channels(1)};
  const Tensor src = device_.Make(desc, {3, 4, 3, 4});
  const Tensor dst = device_.Make(desc);
  const Tensor diff_shift = channels(0);
  const auto op = device_.backend().MakeBatchNorm({desc, /*add=*/false, /*relu=*/true});
  void* saved = device_.Scratch(op->saved_bytes());
  void* workspace = device_.Scratch(op->workspace_bytes());
  op->Forward(Mode::kFrozen, src, {}, parameters, dst, saved, workspace, device_.stream());
  op->Backward(Mode::kFrozen, src, dst, device_.Make(desc, {1, 1, 1, 1}), parameters, saved,
               device_.Make(desc), {}, channels(0), diff_shift, workspace, device_.stream());
  EXPECT_THAT(device_.Export(diff_shift), ElementsAre(1, 1));
}

INSTANTIATE_ON_EACH_BACKEND(BatchNormOn);

}  // namespace
}  // namespace trainer
