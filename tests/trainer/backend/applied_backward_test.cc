// SPDX-License-Identifier: Apache-2.0
//
// What batch norms do backward, left to the convolution between them, gives what it gives in passes
// of its own.  Back ends whose convolutions do not have nothing to show here.

#include "tests/support/test.h"
#include "tests/trainer/backend/each_backend.h"
#include "trainer/backend/measured_backend.h"

namespace trainer {
namespace {

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

}  // namespace
}  // namespace trainer
