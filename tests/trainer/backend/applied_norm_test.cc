// SPDX-License-Identifier: Apache-2.0
//
// A batch norm and ReLU that are left to the convolution behind them give what they give in a pass
// of their own.  Back ends whose convolutions apply none have nothing to show here.

#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/trainer/backend/each_backend.h"

namespace trainer {
namespace {

using testing::Each;
using testing::Truly;

struct AppliedCase {
  Shape src;
  std::int64_t filters, kernel, stride;
};

// What a batch norm with a ReLU and the convolution behind it give, forward and backward.
struct AppliedResults {
  Floats convolved, running_mean, running_variance;  // forward
  Floats normed_convolved;                           // of a batch norm that takes the sums
  Floats diff_filter, diff_src, diff_scale, diff_shift;
};

class AppliedNormOn : public EachBackend {
 protected:
  // None if the convolution does not apply norms.
  std::unique_ptr<Convolution> MakeConvolution(const AppliedCase& c) {
    auto convolution = device_.backend().MakeConvolution({.src = device_.Images(c.src),
                                                          .out_channels = c.filters,
                                                          .kernel = c.kernel,
                                                          .stride = c.stride,
                                                          .padding = c.kernel / 2,
                                                          .wants_sums = true,
                                                          .may_apply_norm = true});
    return convolution->applies_norm() ? std::move(convolution) : nullptr;
  }
  // The same of another's size, in passes.
  std::unique_ptr<Convolution> MakePlain(const AppliedCase& c) {
    return device_.backend().MakeConvolution({.src = device_.Images(c.src),
                                              .out_channels = c.filters,
                                              .kernel = c.kernel,
                                              .stride = c.stride,
                                              .padding = c.kernel / 2});
  }

  Tensor PerChannel(std::int64_t channels, std::uint64_t seed, float middle, float range) {
    Floats values = RandomFloats(channels, seed);
    for (float& value : values) value = middle + range * value;
    return device_.Make({channels}, values);
  }

  AppliedResults Run(const AppliedCase& c, Mode mode, Convolution& convolution, bool applies) {
    Stream& stream = device_.stream();
    const std::int64_t channels = c.src[1];
    const Tensor src = device_.Make(device_.Images(c.src), RandomFloats(c.src.elements(), 1));
    const auto norm = device_.backend().MakeBatchNorm({src.desc, /*add=*/false, /*relu=*/true});
    const BatchNormParameters parameters = {
        PerChannel(channels, 2, 1, 0.25F), PerChannel(channels, 3, 0.25F, 0.5F),
        PerChannel(channels, 4, 0, 0.25F), PerChannel(channels, 5, 1, 0.25F)};
    void* const saved = device_.Scratch(norm->saved_bytes());
    void* const norm_workspace = device_.Scratch(norm->workspace_bytes());
    const Tensor filter =
        device_.Make(convolution.filter(), RandomFloats(convolution.filter().shape.elements(), 6));
    const Tensor convolved = device_.Make(convolution.dst());
    void* const workspace = device_.Scratch(convolution.workspace_bytes());
    const Tensor normed = applies ? Tensor{} : device_.Make(src.desc);
    void* const sums = applies ? device_.Scratch(convolution.sums_bytes()) : nullptr;
    if (applies) {
      norm->ForwardUnapplied(mode, {src}, parameters, saved, norm_workspace, stream);
      convolution.ForwardNormed({src, saved}, filter, convolved, sums, workspace, stream);
    } else {
      norm->Forward(mode, {src}, {}, parameters, normed, saved, norm_workspace, stream);
      convolution.Forward(normed, filter, convolved, workspace, stream);
    }
    AppliedResults results;
    results.convolved = device_.Export(convolved);
    results.running_mean = device_.Export(parameters.running_mean);
    results.running_variance = device_.Export(parameters.running_variance);
    results.normed_convolved = NormBehind(convolved, sums);
    if (mode == Mode::kInference) return results;

    const Tensor diff_dst =
        device_.Make(convolution.dst(), RandomFloats(convolution.dst().shape.elements(), 7));
    const Tensor diff_filter = device_.Make(convolution.filter());
    if (applies) {
      convolution.BackwardFilterNormed({src, saved}, diff_dst, diff_filter, workspace, stream);
    } else {
      convolution.BackwardFilter(normed, diff_dst, diff_filter, workspace, stream);
    }
    results.diff_filter = device_.Export(diff_filter);
    const Tensor diff_normed = device_.Make(src.desc, RandomFloats(c.src.elements(), 8));
    const Tensor diff_scale = PerChannel(channels, 9, 0, 1);
    const Tensor diff_shift = PerChannel(channels, 9, 0, 1);
    norm->Backward(mode, src, normed, diff_normed, parameters, saved, diff_normed, {}, diff_scale,
                   diff_shift, norm_workspace, stream);
    results.diff_src = device_.Export(diff_normed);
    results.diff_scale = device_.Export(diff_scale);
    results.diff_shift = device_.Export(diff_shift);
    return results;
  }

 private:
  Floats NormBehind(const Tensor& convolved, const void* sums) {
    const std::int64_t channels = convolved.desc.shape[1];
    const auto norm = device_.backend().MakeBatchNorm({convolved.desc});
    const BatchNormParameters parameters = {
        PerChannel(channels, 10, 1, 0), PerChannel(channels, 10, 0, 0),
        PerChannel(channels, 10, 0, 0), PerChannel(channels, 10, 1, 0)};
    const Tensor dst = device_.Make(convolved.desc);
    norm->Forward(Mode::kTraining, {convolved, sums}, {}, parameters, dst,
                  device_.Scratch(norm->saved_bytes()), device_.Scratch(norm->workspace_bytes()),
                  device_.stream());
    return device_.Export(dst);
  }
};

// Rounded offsets turn the ReLU of a few values that are almost zero: what depends on single ones
// agrees on the whole.
double ErrorOnTheWhole(const Floats& values, const Floats& expected) {
  Floats errors(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) errors[i] = values[i] - expected.at(i);
  return RootMeanSquare(errors) / RootMeanSquare(expected);
}

TEST_P(AppliedNormOn, GivesWhatAPassGives) {
  for (const AppliedCase& c :
       {AppliedCase{{2, 16, 9, 7}, 24, 3, 2}, AppliedCase{{3, 64, 7, 7}, 32, 1, 1},
        AppliedCase{{3, 12, 5, 6}, 20, 3, 1}, AppliedCase{{1, 40, 3, 3}, 8, 1, 1}}) {
    const auto applying = MakeConvolution(c);
    if (!applying) continue;
    const auto plain = MakePlain(c);
    for (const Mode mode : {Mode::kTraining, Mode::kFrozen, Mode::kInference}) {
      const AppliedResults with = Run(c, mode, *applying, true);
      const AppliedResults without = Run(c, mode, *plain, false);
      EXPECT_LE(RelativeError(with.convolved, without.convolved), 2 * Tolerance());
      EXPECT_LE(RelativeError(with.normed_convolved, without.normed_convolved), 4 * Tolerance());
      EXPECT_EQ(with.running_mean, without.running_mean);
      EXPECT_EQ(with.running_variance, without.running_variance);
      if (mode == Mode::kInference) continue;
      EXPECT_LE(RelativeError(with.diff_filter, without.diff_filter), 2 * Tolerance());
      EXPECT_LE(ErrorOnTheWhole(with.diff_src, without.diff_src), 5 * Tolerance());
      EXPECT_LE(ErrorOnTheWhole(with.diff_scale, without.diff_scale), 5 * Tolerance());
      EXPECT_LE(ErrorOnTheWhole(with.diff_shift, without.diff_shift), 5 * Tolerance());
    }
  }
}

// A channel that hardly varies has a factor of 1 / sqrt(epsilon) = 316, and an offset that half
// precision cannot hold: large values come out, but numbers.
TEST_P(AppliedNormOn, OfAChannelThatHardlyVariesIsFinite) {
  const AppliedCase c = {{1, 8, 2, 2}, 8, 1, 1};
  const auto convolution = MakeConvolution(c);
  if (!convolution) return;
  const auto norm =
      device_.backend().MakeBatchNorm({device_.Images(c.src), /*add=*/false, /*relu=*/true});
  const auto channels = [&](float value) { return device_.Make({8}, Floats(8, value)); };
  for (const float mean : {-300.0F, 300.0F}) {
    const Tensor src = device_.Make(device_.Images(c.src), Floats(32, mean / 2));
    void* const saved = device_.Scratch(norm->saved_bytes());
    norm->ForwardUnapplied(Mode::kFrozen, {src},
                           {channels(1), channels(0), channels(mean), channels(0)}, saved,
                           device_.Scratch(norm->workspace_bytes()), device_.stream());
    const Tensor dst = device_.Make(convolution->dst());
    convolution->ForwardNormed({src, saved},
                               device_.Make(convolution->filter(), Floats(64, 1.0F / 64)), dst,
                               device_.Scratch(convolution->sums_bytes()),
                               device_.Scratch(convolution->workspace_bytes()), device_.stream());
    const Floats values = device_.Export(dst);
    EXPECT_THAT(values, Each(Truly([](float value) { return std::isfinite(value); })));
    // -mean / 2 * 316 is 47,434, of eight channels with a weight of 1/64 each; the ReLU cuts it
    // below 0.
    EXPECT_THAT(values, Each(mean > 0 ? testing::Matcher<float>(0.0F) : testing::Gt(2000.0F)));
  }
}

INSTANTIATE_ON_EACH_BACKEND(AppliedNormOn);

}  // namespace
}  // namespace trainer
