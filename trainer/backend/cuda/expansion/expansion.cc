// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/expansion/expansion.h"

#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/cuda/runtime/runtime.h"

namespace trainer {

std::optional<Conv3BackwardShape> ExpansionOf(const ConvolutionSpec& spec) {
  const Shape& src = spec.src.shape;
  const bool is_between_norms = spec.wants_bn_stats && spec.follows_norm && !spec.adds_diff_src;
  if (!is_between_norms || spec.kernel != 1 || spec.stride != 1 || spec.padding != 0 ||
      PaddedChannels(src[1]) != kConv3Channels ||
      PaddedChannels(spec.out_channels) != kConv3Filters) {
    return std::nullopt;
  }
  const Conv3BackwardShape shape = {.pixels = src[0] * src[2] * src[3],
                                    .dtype = spec.src.dtype,
                                    .sms = SmCount(),
                                    .compute_capability = ComputeCapabilityMajor()};
  return HasConv3Backward(shape) ? std::optional(shape) : std::nullopt;
}

std::size_t ExpansionWorkspaceBytes(const Conv3BackwardShape& shape) {
  return static_cast<std::size_t>(Conv3BackwardScratchFloats(shape)) * sizeof(float);
}

Conv3Backward ExpansionCallOf(const GradientBeforeBnBackward& diff_dst, const Tensor& filter,
                              const NormInput& before, const Tensor& diff_filter,
                              const Tensor& diff_src, void* sums, void* workspace) {
  return {.gradient = diff_dst.gradient.data,
          .mask = static_cast<const std::uint8_t*>(diff_dst.mask),
          .convolved = diff_dst.src.data,
          .means = static_cast<const float*>(diff_dst.saved),
          .coefficients = static_cast<const float*>(diff_dst.coefficients),
          .diff_residual = diff_dst.diff_residual.data,
          .filter = filter.data,
          .diff_filter = diff_filter.data,
          .before = before.values.data,
          .saved = static_cast<const float*>(before.saved),
          .diff_src = diff_src.data,
          .sums = static_cast<float*>(sums),
          .scratch = static_cast<float*>(workspace)};
}

}  // namespace trainer
