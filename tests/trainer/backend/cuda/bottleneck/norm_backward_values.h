// SPDX-License-Identifier: Apache-2.0
//
// The backward pass of a batch norm in front of a data gradient: its operands, what loops give, and
// what the passes give.

#pragma once

#include <type_traits>
#include <vector>

#include "tests/trainer/backend/cuda/bottleneck/kernel_values.h"
#include "trainer/backend/cuda/bottleneck/norm_backward_front.h"
#include "trainer/backend/cuda/norms/batch_norm_kernels.h"

namespace trainer {

// Padding has what forward leaves there: z and what is saved of it are zero.
template <typename T>
struct NormOperands {
  std::size_t pixels, padded, channels;
  std::vector<T> z;
  std::vector<float> saved, coefficients, sums, scale;

  NormOperands(std::size_t pixel_count, std::size_t padded_count, ValueKind kind)
      : NormOperands(pixel_count, padded_count, kind, padded_count) {}
  NormOperands(std::size_t pixel_count, std::size_t padded_count, ValueKind kind,
               std::size_t used_channels)
      : pixels(pixel_count),
        padded(padded_count),
        channels(used_channels),
        saved(Draw(kind, 4 * padded, 31, 0.5F)),
        coefficients(Draw(kind, 3 * padded, 32, 0.5F)),
        sums(Draw(kind, 2 * padded, 33, 3)),
        scale(Draw(kind, channels, 34, 1)) {
    std::vector<float> values = Draw(kind, pixels * padded, 30, 1);
    for (std::size_t at = 0; at < values.size(); ++at) {
      if (at % padded >= channels) values[at] = 0;
    }
    z = Stored<T>(values);
    for (std::size_t c = 0; c < padded; ++c) {
      saved[padded + c] = c < channels ? 0.5F + static_cast<float>(c % 3) / 2 : 0;
      if (c >= channels) saved[c] = 0;
    }
  }
};

// By coefficients.
template <typename T>
std::vector<T> ExpectedDiffSrc(const NormOperands<T>& of, const std::vector<T>& gradient) {
  std::vector<T> diff_src(gradient.size());
  for (std::size_t at = 0; at < gradient.size(); ++at) {
    const std::size_t c = at % of.padded;
    const float* by = of.coefficients.data() + c;
    Assign(diff_src[at], by[0] * ToFloat(gradient[at]) +
                             by[of.padded] * (ToFloat(of.z[at]) - of.saved[c]) + by[2 * of.padded]);
  }
  return diff_src;
}

// The same in device memory, and room for what comes of it.
template <typename T>
class NormMemory {
 public:
  NormMemory(const NormOperands<T>& of, int sms)
      : diff_src(of.z.size()),
        diff_scale(of.channels),
        diff_shift(of.channels),
        shape_{.pixels = static_cast<std::int64_t>(of.pixels),
               .channels = static_cast<int>(of.channels),
               .padded = static_cast<int>(of.padded),
               .dtype = std::is_same_v<T, __half> ? DType::kFloat16 : DType::kBFloat16,
               .sms = sms},
        z_(of.z),
        saved_(of.saved),
        coefficients_(of.coefficients),
        sums_(of.sums),
        scale_(of.scale) {}

  NormBackwardFront WithCoefficients() const {
    return {.src = z_.data(),
            .saved = saved_.data(),
            .coefficients = coefficients_.data(),
            .diff_src = diff_src.data()};
  }
  NormBackwardFront WithSums(bool of_batch) const {
    return {.src = z_.data(),
            .saved = saved_.data(),
            .sums = sums_.data(),
            .scale = scale_.data(),
            .diff_scale = diff_scale.data(),
            .diff_shift = diff_shift.data(),
            .channels = shape_.channels,
            .of_batch = of_batch,
            .diff_src = diff_src.data()};
  }

  // The gradient of z by the passes, of the sums as they are, or as those of one part.
  std::vector<T> RunPass(const std::vector<T>& gradient, bool of_batch,
                         bool in_parts = false) const {
    const DeviceValues<T> diff_dst(gradient);
    const DeviceValues<float> scratch(static_cast<std::size_t>(NormScratchFloats(shape_)));
    NormBackward call = CallOf(of_batch);
    if (!in_parts) call.sums = sums_.data();
    call.diff_dst = diff_dst.data();
    call.scratch = scratch.data();
    RunNormBackward(shape_, scale_.data(), call, nullptr);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return diff_src.Download();
  }
  // WithCoefficients then has those of the passes, of one part.
  void MakeCoefficients(bool of_batch) const {
    RunNormBackwardStatsOnly(shape_, scale_.data(), CallOf(of_batch), coefficients_.data(),
                             nullptr);
  }

  const DeviceValues<T> diff_src;
  const DeviceValues<float> diff_scale, diff_shift;

 private:
  NormBackward CallOf(bool of_batch) const {
    NormBackward call;
    call.src = z_.data();
    call.partial_sums = {sums_.data(), 1};
    call.diff_src = diff_src.data();
    call.diff_scale = diff_scale.data();
    call.diff_shift = diff_shift.data();
    call.of_batch = of_batch;
    call.saved = saved_.data();
    return call;
  }

  const NormShape shape_;
  const DeviceValues<T> z_;
  const DeviceValues<float> saved_, coefficients_, sums_, scale_;
};

}  // namespace trainer
