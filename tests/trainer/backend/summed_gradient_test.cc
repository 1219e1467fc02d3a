// SPDX-License-Identifier: Apache-2.0
//
// A convolution that takes its gradient back through the ReLU before it, and sums it for the batch
// norm there, gives what passes give.  Back ends whose convolutions do not have nothing to show
// here.

#include "tests/support/test.h"
#include "tests/trainer/backend/each_backend.h"

namespace trainer {
namespace {

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
