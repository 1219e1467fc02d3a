// SPDX-License-Identifier: Apache-2.0
//
// A batch norm and ReLU that are left to the convolution behind them, forward or backward, give
// what they give in passes of their own.  Back ends whose convolutions do not have nothing to show
// here.

#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/trainer/backend/each_backend.h"

namespace trainer {
namespace {

using testing::Each;
using testing::Gt;
using testing::Lt;

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

double ErrorOnTheWhole(const Floats& values, const Floats& expected) {
  Floats errors(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) errors[i] = values[i] - expected.at(i);
  return RootMeanSquare(errors) / RootMeanSquare(expected);
}

class AppliedNormOn : public EachBackend {
 protected:
  std::unique_ptr<Convolution> MakeConvolution(const AppliedCase& c) {
    return device_.backend().MakeConvolution({.src = device_.Images(c.src),
                                              .out_channels = c.filters,
                                              .kernel = c.kernel,
                                              .stride = c.stride,
                                              .padding = c.kernel / 2,
                                              .wants_sums = true,
                                              .follows_norm = true});
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

  // `applies`: the convolution, forward and in the gradient of the filter.  `summing`: the one that
  // goes back through the ReLU and sums, or null.
  AppliedResults Run(const AppliedCase& c, Mode mode, Convolution& convolution, bool applies,
                     Convolution* summing) {
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
    const Tensor diff_src = device_.Make(src.desc);
    const Tensor diff_scale = PerChannel(channels, 9, 0, 1);
    const Tensor diff_shift = PerChannel(channels, 9, 0, 1);
    if (summing != nullptr) {
      void* const gradient_sums = device_.Scratch(summing->gradient_sums_bytes());
      summing->BackwardDataSummed(diff_dst, filter, {src, saved}, diff_src, gradient_sums,
                                  device_.Scratch(summing->workspace_bytes()), stream);
      norm->BackwardSummed(mode, src, {diff_src, gradient_sums}, parameters, saved, diff_src,
                           diff_scale, diff_shift, norm_workspace, stream);
    } else {
      convolution.BackwardData(diff_dst, filter, diff_src, workspace, stream);
      norm->Backward(mode, src, normed, diff_src, parameters, saved, diff_src, {}, diff_scale,
                     diff_shift, norm_workspace, stream);
    }
    results.diff_src = device_.Export(diff_src);
    results.diff_scale = device_.Export(diff_scale);
    results.diff_shift = device_.Export(diff_shift);
    return results;
  }

  // Rounded offsets turn the ReLU of a few values that are almost zero: what depends on single ones
  // agrees on the whole.
  void ExpectSame(const AppliedResults& results, const AppliedResults& expected, Mode mode) {
    EXPECT_LE(RelativeError(results.convolved, expected.convolved), 2 * Tolerance());
    EXPECT_LE(RelativeError(results.normed_convolved, expected.normed_convolved), 4 * Tolerance());
    EXPECT_EQ(results.running_mean, expected.running_mean);
    EXPECT_EQ(results.running_variance, expected.running_variance);
    if (mode == Mode::kInference) return;
    EXPECT_LE(RelativeError(results.diff_filter, expected.diff_filter), 2 * Tolerance());
    // Without the terms of the batch diff_src would be off by 0.13 at 126 pixels.
    constexpr double kOfTurnedChoices = 0.1;
    EXPECT_LE(ErrorOnTheWhole(results.diff_src, expected.diff_src), kOfTurnedChoices);
    EXPECT_LE(ErrorOnTheWhole(results.diff_scale, expected.diff_scale), kOfTurnedChoices);
    EXPECT_LE(ErrorOnTheWhole(results.diff_shift, expected.diff_shift), kOfTurnedChoices);
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

const AppliedCase kCases[] = {{{2, 16, 9, 7}, 24, 3, 2},
                              {{3, 64, 7, 7}, 32, 1, 1},
                              {{3, 12, 5, 6}, 20, 3, 1},
                              {{1, 40, 3, 3}, 8, 1, 1}};

TEST_P(AppliedNormOn, GivesWhatAPassGives) {
  for (const AppliedCase& c : kCases) {
    const auto convolution = MakeConvolution(c);
    if (!convolution->applies_norm()) continue;
    const auto plain = MakePlain(c);
    for (const Mode mode : {Mode::kTraining, Mode::kFrozen, Mode::kInference}) {
      ExpectSame(Run(c, mode, *convolution, true, nullptr), Run(c, mode, *plain, false, nullptr),
                 mode);
    }
  }
}

TEST_P(AppliedNormOn, GoesBackThroughTheReluWithItsSums) {
  for (const AppliedCase& c : kCases) {
    const auto convolution = MakeConvolution(c);
    if (convolution->gradient_sums_bytes() == 0) continue;
    const auto plain = MakePlain(c);
    for (const Mode mode : {Mode::kTraining, Mode::kFrozen}) {
      const AppliedResults expected = Run(c, mode, *plain, false, nullptr);
      ExpectSame(Run(c, mode, *plain, false, convolution.get()), expected, mode);
      if (!convolution->applies_norm()) continue;
      ExpectSame(Run(c, mode, *convolution, true, convolution.get()), expected, mode);
    }
  }
}

class AppliedNormOfEightChannelsOn : public AppliedNormOn {
 protected:
  // All values of src are `value`, all filters 1/64; statistics are not those of the batch.  Empty
  // if the convolution does not apply norms.
  Floats Forward(float value, float scale, float shift, float mean, float variance) {
    const AppliedCase c = {{1, 8, 2, 2}, 8, 1, 1};
    const auto convolution = MakeConvolution(c);
    if (!convolution->applies_norm()) return {};
    const Tensor src = device_.Make(device_.Images(c.src), Floats(32, value));
    const auto norm = device_.backend().MakeBatchNorm({src.desc, /*add=*/false, /*relu=*/true});
    const auto channels = [&](float number) { return device_.Make({8}, Floats(8, number)); };
    void* const saved = device_.Scratch(norm->saved_bytes());
    norm->ForwardUnapplied(Mode::kFrozen, {src},
                           {channels(scale), channels(shift), channels(mean), channels(variance)},
                           saved, device_.Scratch(norm->workspace_bytes()), device_.stream());
    const Tensor dst = device_.Make(convolution->dst());
    convolution->ForwardNormed({src, saved},
                               device_.Make(convolution->filter(), Floats(64, 1.0F / 64)), dst,
                               device_.Scratch(convolution->sums_bytes()),
                               device_.Scratch(convolution->workspace_bytes()), device_.stream());
    return device_.Export(dst);
  }
};

// A factor of 1 / sqrt(epsilon) = 316 has an offset that half precision cannot hold: what comes out
// is large, but a number.  -150 should become 150 * 316 = 47,434, an eighth of it behind the
// convolution.
TEST_P(AppliedNormOfEightChannelsOn, ThatHardlyVaryIsFinite) {
  EXPECT_THAT(Forward(-150, 1, 0, -300, 0), Each(testing::AllOf(Gt(2000), Lt(6000))));
  EXPECT_THAT(Forward(150, 1, 0, 300, 0), Each(0));
}

// The ReLU could make a zero of it.
TEST_P(AppliedNormOfEightChannelsOn, ThatAreNoNumbersIsInfinite) {
  EXPECT_THAT(Forward(1, NAN, 0, 0, 1), Each(INFINITY));
  EXPECT_THAT(Forward(1, 1, NAN, 0, 1), Each(INFINITY));
  EXPECT_THAT(Forward(1, 1, 0, NAN, 1), Each(INFINITY));
  EXPECT_THAT(Forward(1, 1, -INFINITY, 0, 1), Each(INFINITY));
  EXPECT_THAT(Forward(1, 1e6F, 0, 0, 1), Each(INFINITY));
}

INSTANTIATE_ON_EACH_BACKEND(AppliedNormOn);
INSTANTIATE_ON_EACH_BACKEND(AppliedNormOfEightChannelsOn);

}  // namespace
}  // namespace trainer
