// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/norms/batch_norm_passes.cuh"
#include "trainer/backend/cuda/norms/dual_batch_norm_kernels.h"

namespace trainer {
namespace batch_norm {
namespace {

// Differentiate has 64 coefficients in each thread: 128 registers.
constexpr int kDualNormBlocksAtOnce = 2;

// `mask` (or null) gets where the ReLU passes.
template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    NormalizePair(const T* first_src, const T* second_src, Statistics first, Statistics second,
                  int pixels, int columns, T* dst, std::uint8_t* mask) {
  SynchronizeGridDependencies();
  constexpr int kAtOnce = kPixelsAtOnce<T>;
  const Track track = TrackOf(columns, pixels);
  if (track.channel >= first.padded) return;
  const ForwardChannels of_first(first, track);
  ForwardChannels of_second(second, track);
  for (int i = 0; i < 8; ++i) of_second.shift[i] += of_first.shift[i];
  Eight<T> x[kAtOnce];
  Eight<T> more[kAtOnce];
  const auto load = [&](int u, std::int64_t at) {
    x[u] = LoadEight(first_src + at);
    more[u] = LoadEight(second_src + at);
  };
  const auto write = [&](int u, std::int64_t at) {
    float y[8];
    float added[8];
    Widen(x[u], y);
    Widen(more[u], added);
    for (int i = 0; i < 8; ++i) {
      y[i] = (y[i] - of_first.mean[i]) * of_first.factor[i] + of_second.Normalize(i, added[i]);
    }
    const unsigned passes = Rectify(y);
    Store8(y, dst + at);
    if (mask != nullptr) mask[at / 8] = static_cast<std::uint8_t>(passes);
  };
  Walk<kAtOnce, From::kEnd>(track, pixels, first.padded, load, write);
}

// What both backward passes load of some pixels.
template <typename T>
struct PairPixels {
  Eight<T> first[kPixelsAtOnce<T>], second[kPixelsAtOnce<T>], gradient[kPixelsAtOnce<T>];
  unsigned passes[kPixelsAtOnce<T>];

  __device__ void Load(int u, const T* first_src, const T* second_src, const T* diff_dst,
                       const std::uint8_t* mask, std::int64_t at) {
    first[u] = LoadEight(first_src + at);
    second[u] = LoadEight(second_src + at);
    gradient[u] = LoadEight(diff_dst + at);
    passes[u] = LoadMask(mask, at);
  }
  // 0 where the ReLU does not pass.
  __device__ void Gradient(int u, float (&values)[8]) const {
    Widen(gradient[u], values);
    for (int i = 0; i < 8; ++i) {
      if ((passes[u] >> i & 1U) == 0) values[i] = 0;
    }
  }
};

// As GradientSums, of two inputs at once.  *_saved: means and 1 / deviations.
template <typename T>
__global__ void __launch_bounds__(kThreads, kDualNormBlocksAtOnce)
    DualNormGradientSums(const T* first_src, const T* second_src, const std::uint8_t* mask,
                         const T* diff_dst, const float* first_saved, const float* second_saved,
                         int pixels, int padded, int columns, float* first_partial,
                         float* second_partial) {
  SynchronizeGridDependencies();
  const Track track = TrackOf(columns, pixels);
  float sum[8] = {};
  float first_products[8] = {};
  float second_products[8] = {};
  if (track.channel < padded) {
    float first_mean[8];
    float second_mean[8];
    LoadChannels(first_saved, track.channel, first_mean);
    LoadChannels(second_saved, track.channel, second_mean);
    PairPixels<T> pixel;
    const auto load = [&](int u, std::int64_t at) {
      pixel.Load(u, first_src, second_src, diff_dst, mask, at);
    };
    const auto add = [&](int u, std::int64_t /*at*/) {
      float of_first[8];
      float of_second[8];
      float gradient[8];
      Widen(pixel.first[u], of_first);
      Widen(pixel.second[u], of_second);
      pixel.Gradient(u, gradient);
      for (int i = 0; i < 8; ++i) {
        sum[i] += gradient[i];
        first_products[i] += gradient[i] * (of_first[i] - first_mean[i]);
        second_products[i] += gradient[i] * (of_second[i] - second_mean[i]);
      }
    };
    Walk<kPixelsAtOnce<T>, From::kStart>(track, pixels, padded, load, add);
    float inverse[8];
    LoadChannels(first_saved + padded, track.channel, inverse);
    for (int i = 0; i < 8; ++i) first_products[i] *= inverse[i];
    LoadChannels(second_saved + padded, track.channel, inverse);
    for (int i = 0; i < 8; ++i) second_products[i] *= inverse[i];
  }
  StorePartial(sum, first_products, columns, padded, first_partial);
  __syncthreads();  // both use the same shared memory
  StorePartial(sum, second_products, columns, padded, second_partial);
}

template <typename T>
__global__ void __launch_bounds__(kThreads, kDualNormBlocksAtOnce)
    DifferentiatePair(const T* first_src, const T* second_src, const std::uint8_t* mask,
                      const T* diff_dst, const float* first_means, const float* second_means,
                      BackwardCoefficients first_by, BackwardCoefficients second_by, int pixels,
                      int padded, int columns, T* diff_first, T* diff_second) {
  SynchronizeGridDependencies();
  const Track track = TrackOf(columns, pixels);
  if (track.channel >= padded) return;
  const BackwardChannels of_first(first_means, first_by, track.channel);
  const BackwardChannels of_second(second_means, second_by, track.channel);
  PairPixels<T> pixel;
  const auto load = [&](int u, std::int64_t at) {
    pixel.Load(u, first_src, second_src, diff_dst, mask, at);
  };
  const auto write = [&](int u, std::int64_t at) {
    float dx[8];
    float gradient[8];
    pixel.Gradient(u, gradient);
    Widen(pixel.first[u], dx);
    for (int i = 0; i < 8; ++i) dx[i] = of_first.Differentiate(i, gradient[i], dx[i]);
    Store8(dx, diff_first + at);
    Widen(pixel.second[u], dx);
    for (int i = 0; i < 8; ++i) dx[i] = of_second.Differentiate(i, gradient[i], dx[i]);
    Store8(dx, diff_second + at);
  };
  Walk<kPixelsAtOnce<T>, From::kEnd>(track, pixels, padded, load, write);
}

}  // namespace
}  // namespace batch_norm

// Coefficients of both, then partial sums of both.
std::int64_t DualNormScratchFloats(const NormShape& shape) {
  return (std::int64_t{4} * batch_norm::SweepOf(shape).blocks + 6) * shape.padded;
}

std::int64_t DualNormSavedFloats(const NormShape& shape) { return 2 * NormSavedFloats(shape); }

void RunDualNormForward(const NormShape& shape, const NormParameters& first,
                        const NormParameters& second, const DualNormForward& call,
                        CUstream_st* stream) {
  // The second one's means go where the first one's partial sums are no longer needed.
  float* saved_of_second = call.saved == nullptr ? nullptr : call.saved + NormSavedFloats(shape);
  const batch_norm::Statistics of_first = batch_norm::FindStatistics(
      shape, first, call.first, call.of_batch, call.saved, call.scratch, stream);
  const batch_norm::Statistics of_second =
      batch_norm::FindStatistics(shape, second, call.second, call.of_batch, saved_of_second,
                                 call.scratch + 2 * shape.padded, stream);
  const batch_norm::Sweep sweep = batch_norm::SweepOf(shape);
  WithElement(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(batch_norm::NormalizePair<T>, sweep.grid(), kThreads, stream,
           static_cast<const T*>(call.first.values), static_cast<const T*>(call.second.values),
           of_first, of_second, shape.pixels, sweep.columns, static_cast<T*>(call.dst), call.mask);
  });
}

void RunDualNormBackward(const NormShape& shape, const DualNormGradients& first,
                         const DualNormGradients& second, const DualNormBackward& call,
                         CUstream_st* stream) {
  const batch_norm::Sweep sweep = batch_norm::SweepOf(shape, batch_norm::kDualNormBlocksAtOnce);
  const int padded = shape.padded;
  const float* first_saved = call.saved;
  const float* second_saved = call.saved + NormSavedFloats(shape);
  const bool leaves_first = call.first_coefficients != nullptr;
  const batch_norm::BackwardCoefficients by_first =
      batch_norm::CoefficientsIn(leaves_first ? call.first_coefficients : call.scratch, padded);
  const batch_norm::BackwardCoefficients by_second =
      batch_norm::CoefficientsIn(call.scratch + 3 * padded, padded);
  float* first_partial = call.scratch + 6 * padded;
  float* second_partial = first_partial + std::int64_t{2} * sweep.blocks * padded;
  WithElement(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* first_src = static_cast<const T*>(call.first);
    const auto* second_src = static_cast<const T*>(call.second);
    const auto* diff_dst = static_cast<const T*>(call.diff_dst);
    NormPartialSums of_first = first.partial_sums;
    NormPartialSums of_second = second.partial_sums;
    if (of_first.values == nullptr) {
      Launch(batch_norm::DualNormGradientSums<T>, sweep.grid(), kThreads, stream, first_src,
             second_src, call.mask, diff_dst, first_saved, second_saved, shape.pixels, padded,
             sweep.columns, first_partial, second_partial);
      of_first = {first_partial, sweep.blocks};
      of_second = {second_partial, sweep.blocks};
    }
    batch_norm::FinishGradientSums(shape, of_first, first.scale, first_saved + padded,
                                   call.of_batch, first.diff_scale, first.diff_shift, by_first,
                                   stream);
    batch_norm::FinishGradientSums(shape, of_second, second.scale, second_saved + padded,
                                   call.of_batch, second.diff_scale, second.diff_shift, by_second,
                                   stream);
    if (leaves_first) return;
    Launch(batch_norm::DifferentiatePair<T>, sweep.grid(), kThreads, stream, first_src, second_src,
           call.mask, diff_dst, first_saved, second_saved, by_first, by_second, shape.pixels,
           padded, sweep.columns, static_cast<T*>(first.diff_src),
           static_cast<T*>(second.diff_src));
  });
  if (!leaves_first) return;
  NormBackward alone;
  alone.config = {.depth = 1, .waves = 4};  // that of tensors of such a size on an H200
  alone.src = call.second;
  alone.mask = call.mask;
  alone.diff_dst = call.diff_dst;
  alone.diff_src = second.diff_src;
  alone.saved = second_saved;
  batch_norm::RunDifferentiate(shape, alone, by_second, stream);
}

}  // namespace trainer
