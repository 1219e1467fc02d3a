// SPDX-License-Identifier: Apache-2.0

#include "tests/support/test.h"
#include "tests/trainer/backend/each_backend.h"
#include "trainer/backend/measured_backend.h"

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
    op->Forward(mode, {src}, {}, parameters_, dst, saved, device_.Scratch(op->workspace_bytes()),
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

// Where y is exactly 0 there is no gradient: neither of one, nor of the sum of two.
TEST_P(BatchNormOn, ReluPassesNothingAtZero) {
  const TensorDesc desc = device_.Images({1, 2, 1, 2});
  const auto channels = [&](float value) { return device_.Make({2}, {value, value}); };
  const BatchNormParameters parameters = {channels(1), channels(0), channels(3), channels(1)};
  const Tensor src = device_.Make(desc, {3, 4, 3, 4});
  const Tensor dst = device_.Make(desc);
  const auto gradient = [&] { return device_.Make(desc, {1, 1, 1, 1}); };
  const Tensor diff_scale = channels(0);
  const Tensor diff_shift = channels(0);
  {
    const auto op = device_.backend().MakeBatchNorm({desc, /*add=*/false, /*relu=*/true});
    void* saved = device_.Scratch(op->saved_bytes());
    void* workspace = device_.Scratch(op->workspace_bytes());
    op->Forward(Mode::kFrozen, {src}, {}, parameters, dst, saved, workspace, device_.stream());
    op->Backward(Mode::kFrozen, src, dst, gradient(), parameters, saved, device_.Make(desc), {},
                 diff_scale, diff_shift, workspace, device_.stream());
    EXPECT_THAT(device_.Export(diff_shift), ElementsAre(1, 1));
  }
  const auto op = device_.backend().MakeDualBatchNorm({desc});
  void* saved = device_.Scratch(op->saved_bytes());
  void* workspace = device_.Scratch(op->workspace_bytes());
  const DualBatchNorm::Operand operand = {{src}, parameters};
  const auto gradients = [&] {
    return DualBatchNorm::Gradients{device_.Make(desc), channels(0), channels(0)};
  };
  const DualBatchNorm::Gradients first = gradients();
  const DualBatchNorm::Gradients second = gradients();
  op->Forward(Mode::kFrozen, operand, operand, dst, saved, workspace, device_.stream());
  op->Backward(Mode::kFrozen, operand, operand, dst, gradient(), saved, first, second, workspace,
               device_.stream());
  EXPECT_THAT(device_.Export(first.shift), ElementsAre(1, 1));
  EXPECT_THAT(device_.Export(second.shift), ElementsAre(1, 1));
}

// With the sums that a convolution gave or without, it is the same batch norm.
TEST_P(BatchNormOn, TakesTheSumsOfTheConvolutionBeforeIt) {
  struct Case {
    Shape src;
    std::int64_t filters, kernel, stride;
  };
  for (const Case& c : {Case{{2, 16, 9, 7}, 24, 3, 2}, Case{{4, 64, 14, 14}, 64, 1, 1},
                        Case{{3, 12, 5, 5}, 20, 1, 1}}) {
    const Tensor src = device_.Make(device_.Images(c.src), RandomFloats(c.src.elements(), 1));
    const auto convolution = device_.backend().MakeConvolution({.src = src.desc,
                                                                .out_channels = c.filters,
                                                                .kernel = c.kernel,
                                                                .stride = c.stride,
                                                                .padding = c.kernel / 2,
                                                                .wants_bn_stats = true});
    if (convolution->bn_stats_bytes() == 0) continue;
    const Tensor filter = device_.Make(convolution->filter(),
                                       RandomFloats(convolution->filter().shape.elements(), 2));
    const Tensor convolved = device_.Make(convolution->dst());
    void* sums = device_.Scratch(convolution->bn_stats_bytes());
    convolution->ForwardWithBnStats(src, filter, convolved, sums,
                                    device_.Scratch(convolution->workspace_bytes()),
                                    device_.stream());
    const auto norm = device_.backend().MakeBatchNorm({convolved.desc});
    const auto per_channel = [&](std::uint64_t seed) {
      return device_.Make({c.filters}, RandomFloats(c.filters, seed));
    };
    const auto forward = [&](const void* given) {
      const BatchNormParameters parameters = {per_channel(3), per_channel(4), per_channel(5),
                                              per_channel(6)};
      const Tensor dst = device_.Make(convolved.desc);
      norm->Forward(Mode::kTraining, {convolved, given}, {}, parameters, dst,
                    device_.Scratch(norm->saved_bytes()), device_.Scratch(norm->workspace_bytes()),
                    device_.stream());
      return std::vector{device_.Export(dst), device_.Export(parameters.running_mean),
                         device_.Export(parameters.running_variance)};
    };
    const std::vector<Floats> with = forward(sums);
    const std::vector<Floats> without = forward(nullptr);
    for (std::size_t i = 0; i < with.size(); ++i) {
      EXPECT_LE(RelativeError(with[i], without[i]), 2 * Tolerance()) << i;
    }
  }
}

INSTANTIATE_ON_EACH_BACKEND(BatchNormOn);

// What batch norms do backward, left to the convolution between them, gives what it gives in passes
// of its own.  Back ends whose convolutions do not have nothing to show here.

// What comes out backward; of a pair the second's gradient is in diff_residual.
struct Gradients {
  Floats diff_filter, diff_src, diff_scale_before, diff_shift_before;
  Floats diff_scale, diff_shift, diff_residual, diff_second_scale;
};

class AppliedBackwardOn : public EachBackend {
 protected:
  std::unique_ptr<Convolution> MakeConvolution(const Shape& src, std::int64_t filters,
                                               bool between_norms) {
    return backend_->MakeConvolution({.src = device_.Images(src),
                                      .out_channels = filters,
                                      .wants_bn_stats = between_norms,
                                      .follows_norm = between_norms});
  }

  Tensor PerChannel(std::int64_t channels, std::uint64_t seed, float middle, float range) {
    Floats values = RandomFloats(channels, seed);
    for (float& value : values) value = middle + range * value;
    return device_.Make({channels}, values);
  }
  BatchNormParameters Parameters(std::int64_t channels, std::uint64_t seed) {
    return {PerChannel(channels, seed, 1, 0.25F), PerChannel(channels, seed + 1, 0.25F, 0.5F),
            PerChannel(channels, seed + 2, 0, 0.25F), PerChannel(channels, seed + 3, 1, 0.25F)};
  }
  Tensor Random(const TensorDesc& desc, std::uint64_t seed) {
    return device_.Make(desc, RandomFloats(desc.shape.elements(), seed));
  }
  template <typename Op>
  void* Workspace(const Op& op) {
    void* workspace = device_.Scratch(op.workspace_bytes());
    device_.Poison(workspace, op.workspace_bytes());
    return workspace;
  }
  void* Poisoned(std::size_t bytes) {
    void* memory = device_.Scratch(bytes);
    device_.Poison(memory, bytes);
    return memory;
  }

  // Norm and ReLU, `plain`, and another norm with what is added and a ReLU; backward by `applying`,
  // or in passes if that is null.  `pair`: what is added is a batch norm too.
  Gradients Run(Mode mode, Convolution& plain, Convolution* applying, bool pair) {
    Backend& backend = *backend_;
    Stream& stream = device_.stream();
    const Tensor before = Random(device_.Images(shape_), 1);
    const std::int64_t channels = shape_[1];
    const std::int64_t filters = plain.dst().shape[1];
    const BatchNormParameters parameters_before = Parameters(channels, 2);
    const auto norm_before = backend.MakeBatchNorm({before.desc, /*add=*/false, /*relu=*/true});
    void* const saved_before = Poisoned(norm_before->saved_bytes());
    const Tensor normed = device_.Make(before.desc);
    norm_before->Forward(mode, {before}, {}, parameters_before, normed, saved_before,
                         Workspace(*norm_before), stream);
    Tensor filter = Random(plain.filter(), 6);
    const Tensor convolved = device_.Make(plain.dst());
    plain.Forward(normed, filter, convolved, Workspace(plain), stream);

    const TensorDesc& desc = convolved.desc;
    const Tensor residual = Random(desc, 7);
    const Tensor dst = device_.Make(desc);
    const BatchNormParameters first = Parameters(filters, 8);
    const BatchNormParameters second = Parameters(filters, 12);
    const auto norm = backend.MakeBatchNorm({desc, /*add=*/true, /*relu=*/true});
    const auto norms = backend.MakeDualBatchNorm({desc});
    void* const saved = Poisoned(pair ? norms->saved_bytes() : norm->saved_bytes());
    void* const workspace = pair ? Workspace(*norms) : Workspace(*norm);
    if (pair) {
      norms->Forward(mode, {{convolved}, first}, {{residual}, second}, dst, saved, workspace,
                     stream);
    } else {
      norm->Forward(mode, {convolved}, residual, first, dst, saved, workspace, stream);
    }

    const Tensor diff_dst = Random(desc, 16);
    const Tensor diff_convolved = device_.Make(desc);
    const Tensor diff_residual = device_.Make(desc);
    const Tensor diff_filter = device_.Make(plain.filter());
    const Tensor diff_src = device_.Make(before.desc);
    const Tensor diff_scale = PerChannel(filters, 9, 0, 1);
    const Tensor diff_shift = PerChannel(filters, 9, 0, 1);
    const Tensor diff_second_scale = PerChannel(filters, 9, 0, 1);
    const Tensor diff_second_shift = PerChannel(filters, 9, 0, 1);
    const Tensor diff_scale_before = PerChannel(channels, 9, 0, 1);
    const Tensor diff_shift_before = PerChannel(channels, 9, 0, 1);
    const DualBatchNorm::Operand of_first = {{convolved}, first};
    const DualBatchNorm::Operand of_second = {{residual}, second};
    const DualBatchNorm::Gradients to_second = {diff_residual, diff_second_scale,
                                                diff_second_shift};
    if (applying != nullptr) {
      void* const coefficients =
          Poisoned(pair ? norms->coefficients_bytes() : norm->coefficients_bytes());
      const GradientBeforeBnBackward stats_only =
          pair ? norms->BackwardFirstStatsOnly(mode, of_first, of_second, diff_dst, saved,
                                               {{}, diff_scale, diff_shift}, to_second,
                                               coefficients, workspace, stream)
               : norm->BackwardStatsOnly(mode, convolved, diff_dst, first, saved, diff_residual,
                                         diff_scale, diff_shift, coefficients, workspace, stream);
      void* const sums = Poisoned(applying->bn_backward_stats_bytes());
      applying->BackwardWithBnApply(stats_only, filter, {before, saved_before}, diff_filter,
                                    diff_src, sums, Workspace(*applying), stream);
      norm_before->BackwardWithBnStats(mode, before, {diff_src, sums}, parameters_before,
                                       saved_before, diff_src, diff_scale_before, diff_shift_before,
                                       Workspace(*norm_before), stream);
    } else {
      if (pair) {
        norms->Backward(mode, of_first, of_second, dst, diff_dst, saved,
                        {diff_convolved, diff_scale, diff_shift}, to_second, workspace, stream);
      } else {
        norm->Backward(mode, convolved, dst, diff_dst, first, saved, diff_convolved, diff_residual,
                       diff_scale, diff_shift, workspace, stream);
      }
      plain.BackwardFilter(normed, diff_convolved, diff_filter, Workspace(plain), stream);
      plain.BackwardData(diff_convolved, filter, diff_src, Workspace(plain), stream);
      norm_before->Backward(mode, before, normed, diff_src, parameters_before, saved_before,
                            diff_src, {}, diff_scale_before, diff_shift_before,
                            Workspace(*norm_before), stream);
    }
    Gradients to = {device_.Export(diff_filter),       device_.Export(diff_src),
                    device_.Export(diff_scale_before), device_.Export(diff_shift_before),
                    device_.Export(diff_scale),        device_.Export(diff_shift),
                    device_.Export(diff_residual),     {}};
    if (pair) to.diff_second_scale = device_.Export(diff_second_scale);
    return to;
  }

  void ExpectSame(const Gradients& results, const Gradients& expected) {
    // Passes round the gradient in between to the type, and so does the convolution.
    EXPECT_LE(RelativeError(results.diff_filter, expected.diff_filter), Tolerance());
    EXPECT_LE(RelativeError(results.diff_src, expected.diff_src), 2 * Tolerance());
    EXPECT_LE(RelativeError(results.diff_scale_before, expected.diff_scale_before), Tolerance());
    EXPECT_LE(RelativeError(results.diff_shift_before, expected.diff_shift_before), Tolerance());
    EXPECT_EQ(results.diff_scale, expected.diff_scale);
    EXPECT_EQ(results.diff_shift, expected.diff_shift);
    EXPECT_EQ(results.diff_residual, expected.diff_residual);
    EXPECT_EQ(results.diff_second_scale, expected.diff_second_scale);
  }

  Backend* backend_ = &device_.backend();
  Shape shape_;
};

// Channels with padding and without; an odd number of pixels.
TEST_P(AppliedBackwardOn, GivesWhatPassesGive) {
  for (const auto& [src, filters] :
       {std::pair(Shape{2, 64, 7, 5}, 256), {Shape{1, 61, 3, 3}, 250}}) {
    const auto applying = MakeConvolution(src, filters, true);
    if (!applying->applies_norm_backward()) continue;
    shape_ = src;
    const auto plain = MakeConvolution(src, filters, false);
    EXPECT_FALSE(plain->applies_norm_backward());
    for (const Mode mode : {Mode::kTraining, Mode::kFrozen}) {
      for (const bool pair : {false, true}) {
        SCOPED_TRACE(std::to_string(filters) + (pair ? " pair" : "") +
                     (mode == Mode::kFrozen ? " frozen" : ""));
        ExpectSame(Run(mode, *plain, applying.get(), pair), Run(mode, *plain, nullptr, pair));
      }
    }
  }
}

TEST_P(AppliedBackwardOn, IsSeenByAProfile) {
  OpRecorder recorder([this] { return device_.backend().MakeEvent(); });
  const auto measured = MakeMeasuredBackend(device_.backend(), recorder);
  backend_ = measured.get();
  shape_ = {1, 64, 3, 3};
  const auto applying = MakeConvolution(shape_, 256, true);
  if (!applying->applies_norm_backward()) return;
  const auto plain = MakeConvolution(shape_, 256, false);
  recorder.Start();
  for (const bool pair : {false, true}) {
    // Not a number of one of them would be in all.
    EXPECT_FALSE(
        std::isnan(RootMeanSquare(Run(Mode::kTraining, *plain, applying.get(), pair).diff_filter)));
  }
  recorder.Collect();
  std::map<std::string, int> calls;
  for (const ProfiledOp& op : recorder.Ops()) calls[op.op] += static_cast<int>(op.calls);
  EXPECT_EQ(calls["convolution backward, with batch norms"], 2);
  EXPECT_EQ(calls["batch norm backward statistics"], 1);
  EXPECT_EQ(calls["batch norm pair backward, but for one gradient"], 1);
  EXPECT_EQ(calls["convolution backward filter"] + calls["convolution backward data"], 0);
}

// Sizes for which nobody has such a kernel, and gradients that are added to others.
TEST_P(AppliedBackwardOn, IsOfBottlenecksOf64ChannelsAlone) {
  for (const auto& [src, filters] : {std::pair(Shape{2, 64, 4, 4}, 128),
                                     {Shape{2, 128, 4, 4}, 256},
                                     {Shape{1, 256, 2, 2}, 64}}) {
    EXPECT_FALSE(MakeConvolution(src, filters, true)->applies_norm_backward());
  }
  const auto adding = device_.backend().MakeConvolution({.src = device_.Images({1, 64, 3, 3}),
                                                         .out_channels = 256,
                                                         .adds_diff_src = true,
                                                         .wants_bn_stats = true,
                                                         .follows_norm = true});
  EXPECT_FALSE(adding->applies_norm_backward());
  const auto wide = device_.backend().MakeConvolution({.src = device_.Images({1, 64, 3, 3}),
                                                       .out_channels = 256,
                                                       .kernel = 3,
                                                       .padding = 1,
                                                       .wants_bn_stats = true,
                                                       .follows_norm = true});
  EXPECT_FALSE(wide->applies_norm_backward());
}

INSTANTIATE_ON_EACH_BACKEND(AppliedBackwardOn);

// A convolution that takes its gradient back through the ReLU before it, and sums it for the batch
// norm there, gives what passes give.  Back ends whose convolutions do not have nothing to show
// here.

struct SummedCase {
  Shape src;
  std::int64_t filters, kernel, stride;
};

class SummedGradientOn : public EachBackend {
 protected:
  struct Results {
    Floats diff_src, diff_scale, diff_shift;
  };

  std::unique_ptr<Convolution> MakeConvolution(const SummedCase& c, bool follows_norm) {
    return device_.backend().MakeConvolution({.src = device_.Images(c.src),
                                              .out_channels = c.filters,
                                              .kernel = c.kernel,
                                              .stride = c.stride,
                                              .padding = c.kernel / 2,
                                              .follows_norm = follows_norm});
  }
  Tensor PerChannel(std::int64_t channels, std::uint64_t seed, float middle, float range) {
    Floats values = RandomFloats(channels, seed);
    for (float& value : values) value = middle + range * value;
    return device_.Make({channels}, values);
  }

  // Backward from a gradient of what `convolution` gives, to that of what the batch norm before it
  // has read.  `sums`: by BackwardDataDreluBnStats, or else in passes.
  Results Run(const SummedCase& c, Mode mode, Convolution& convolution, bool sums) {
    Stream& stream = device_.stream();
    const std::int64_t channels = c.src[1];
    const Tensor src = device_.Make(device_.Images(c.src), RandomFloats(c.src.elements(), 1));
    const auto norm = device_.backend().MakeBatchNorm({src.desc, /*add=*/false, /*relu=*/true});
    const BatchNormParameters parameters = {
        PerChannel(channels, 2, 1, 0.25F), PerChannel(channels, 3, 0.25F, 0.5F),
        PerChannel(channels, 4, 0, 0.25F), PerChannel(channels, 5, 1, 0.25F)};
    void* const saved = device_.Scratch(norm->saved_bytes());
    void* const norm_workspace = device_.Scratch(norm->workspace_bytes());
    const Tensor normed = device_.Make(src.desc);
    norm->Forward(mode, {src}, {}, parameters, normed, saved, norm_workspace, stream);

    const Tensor filter =
        device_.Make(convolution.filter(), RandomFloats(convolution.filter().shape.elements(), 6));
    const Tensor diff_dst =
        device_.Make(convolution.dst(), RandomFloats(convolution.dst().shape.elements(), 7));
    const Tensor diff_src = device_.Make(src.desc);
    const Tensor diff_scale = PerChannel(channels, 9, 0, 1);
    const Tensor diff_shift = PerChannel(channels, 9, 0, 1);
    void* const workspace = device_.Scratch(convolution.workspace_bytes());
    if (sums) {
      void* const gradient_sums = device_.Scratch(convolution.bn_backward_stats_bytes());
      convolution.BackwardDataDreluBnStats(diff_dst, filter, {src, saved}, diff_src, gradient_sums,
                                           workspace, stream);
      norm->BackwardWithBnStats(mode, src, {diff_src, gradient_sums}, parameters, saved, diff_src,
                                diff_scale, diff_shift, norm_workspace, stream);
    } else {
      convolution.BackwardData(diff_dst, filter, diff_src, workspace, stream);
      norm->Backward(mode, src, normed, diff_src, parameters, saved, diff_src, {}, diff_scale,
                     diff_shift, norm_workspace, stream);
    }
    return {device_.Export(diff_src), device_.Export(diff_scale), device_.Export(diff_shift)};
  }
};

TEST_P(SummedGradientOn, GivesWhatPassesGive) {
  const SummedCase cases[] = {{{2, 16, 9, 7}, 24, 3, 2},
                              {{3, 64, 7, 7}, 32, 1, 1},
                              {{3, 12, 5, 6}, 20, 3, 1},
                              {{1, 40, 3, 3}, 8, 1, 1}};
  for (const SummedCase& c : cases) {
    const auto summing = MakeConvolution(c, true);
    if (summing->bn_backward_stats_bytes() == 0) continue;
    const auto plain = MakeConvolution(c, false);
    EXPECT_EQ(plain->bn_backward_stats_bytes(), 0);
    for (const Mode mode : {Mode::kTraining, Mode::kFrozen}) {
      const Results results = Run(c, mode, *summing, true);
      const Results expected = Run(c, mode, *plain, false);
      EXPECT_LE(RelativeError(results.diff_src, expected.diff_src), 2 * Tolerance());
      EXPECT_LE(RelativeError(results.diff_scale, expected.diff_scale), Tolerance());
      EXPECT_LE(RelativeError(results.diff_shift, expected.diff_shift), Tolerance());
    }
  }
}

INSTANTIATE_ON_EACH_BACKEND(SummedGradientOn);

}  // namespace
}  // namespace trainer
