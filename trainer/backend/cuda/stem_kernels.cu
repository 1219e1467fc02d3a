// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/batch_norm_passes.cuh"
#include "trainer/backend/cuda/element.cuh"
#include "trainer/backend/cuda/stem_kernels.h"

namespace trainer {
namespace {

using batch_norm::BackwardCoefficients;
using batch_norm::Coefficients;
using batch_norm::ElementOf;
using batch_norm::LoadChannels;
using batch_norm::Sweep;
using batch_norm::SweepOf;
using batch_norm::Track;
using batch_norm::TrackOf;

constexpr int kPaddedBlockChannels = 16;
constexpr int kBlockFilter = kBlockKernel * kBlockKernel * kPaddedBlockChannels;
constexpr int kPixelFilter = 7 * 7 * 8;

// The pixels of one block of one image, added with a weight.
__device__ void AddBlock(const PixelsCall& call, std::int64_t n, std::int64_t top,
                         std::int64_t left, float weight, float (&sum)[kPaddedBlockChannels]) {
  const bool mirror = call.mirror[n] != 0;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t h = top + i / 2;
    const std::int64_t w = left + i % 2;
    if (h < 0 || h >= call.height || w < 0 || w >= call.width) continue;
    const std::int64_t column = mirror ? call.width - 1 - w : w;
    const std::uint8_t* pixel = call.pixels + ((n * call.height + h) * call.width + column) * 3;
    for (int c = 0; c < 3; ++c) {
      sum[i * 3 + c] += weight * (static_cast<float>(pixel[c]) - call.mean[c]) * call.factor[c];
    }
  }
}

template <typename T>
__global__ void ToBlocks(PixelsCall call, std::int64_t down, std::int64_t across, T* dst) {
  const std::int64_t i = Item();
  if (i >= call.samples * down * across) return;
  const std::int64_t left = (i % across - 2) * 2;
  const std::int64_t top = (i / across % down - 2) * 2;
  const std::int64_t n = i / (across * down);
  const float lambda = *call.lambda;
  float sum[kPaddedBlockChannels] = {};
  AddBlock(call, n, top, left, lambda, sum);
  if (lambda != 1) AddBlock(call, call.samples - 1 - n, top, left, 1 - lambda, sum);
  float half[8];
  for (int part = 0; part < 2; ++part) {
    for (int c = 0; c < 8; ++c) half[c] = sum[part * 8 + c];
    Store8(half, dst + i * kPaddedBlockChannels + part * 8);
  }
}

// Where an element of a filter over blocks is in the filter over pixels; -1: nowhere.
__device__ int PixelTap(int in_block) {
  const int channel = in_block % kPaddedBlockChannels;
  const int tap = in_block / kPaddedBlockChannels;
  const int r = tap / kBlockKernel * 2 + channel / 6 - 1;
  const int s = tap % kBlockKernel * 2 + channel / 3 % 2 - 1;
  if (channel >= kBlockChannels || r < 0 || s < 0) return -1;
  return (r * 7 + s) * 8 + channel % 3;
}

template <typename T>
__global__ void FilterTo(const T* filter, std::int64_t filters, T* blocks) {
  const std::int64_t i = Item();
  if (i >= filters * kBlockFilter) return;
  const int from = PixelTap(static_cast<int>(i % kBlockFilter));
  Assign(blocks[i], from < 0 ? 0.0F : ToFloat(filter[i / kBlockFilter * kPixelFilter + from]));
}

template <typename T>
__global__ void FilterFrom(const T* blocks, std::int64_t filters, T* filter) {
  const std::int64_t i = Item();
  if (i >= filters * kPixelFilter) return;
  const int at = static_cast<int>(i % kPixelFilter);
  const int colour = at % 8;
  const int r = at / 8 / 7 + 1;
  const int s = at / 8 % 7 + 1;
  const int from =
      (r / 2 * kBlockKernel + s / 2) * kPaddedBlockChannels + (r % 2 * 2 + s % 2) * 3 + colour;
  Assign(filter[i], colour < 3 ? ToFloat(blocks[i / kPixelFilter * kBlockFilter + from]) : 0.0F);
}

// 32-bit places of pixels: dividing 64 bits takes long.
struct Extents {
  int height, width, out_height, out_width;
  int kernel, stride, padding;
};
Extents ExtentsOf(const PoolShape& pool) {
  return {static_cast<int>(pool.height),
          static_cast<int>(pool.width),
          static_cast<int>(pool.out_height),
          static_cast<int>(pool.out_width),
          pool.kernel,
          pool.stride,
          pool.padding};
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 2)
    NormalizeAndPool(const T* src, Coefficients by, Extents e, int out_pixels, int padded,
                     int columns, T* dst, T* chosen, std::uint8_t* winners, std::uint8_t* mask) {
  const Track track = TrackOf(columns);
  if (track.channel >= padded) return;
  float factor[8];
  float mean[8];
  float shift[8];
  LoadChannels(by.factor, track.channel, factor);
  LoadChannels(by.mean, track.channel, mean);
  LoadChannels(by.shift, track.channel, shift);
  for (int first = track.first; first < out_pixels; first += track.step) {
    const int pixel = out_pixels - 1 - first;
    const int n = pixel / (e.out_height * e.out_width);
    const int top = pixel / e.out_width % e.out_height * e.stride - e.padding;
    const int left = pixel % e.out_width * e.stride - e.padding;
    float best[8] = {};  // of those that the ReLU lets through, or not a number
    float input[8] = {};
    unsigned place[8];
    for (int i = 0; i < 8; ++i) place[i] = kNobody;
    for (int r = 0; r < e.kernel; ++r) {
      const int h = top + r;
      if (h < 0 || h >= e.height) continue;
      for (int s = 0; s < e.kernel; ++s) {
        const int w = left + s;
        if (w < 0 || w >= e.width) continue;
        float x[8];
        Load8(src + ElementOf((n * e.height + h) * e.width + w, padded) + track.channel, x);
        for (int i = 0; i < 8; ++i) {
          const float y = (x[i] - mean[i]) * factor[i] + shift[i];
          if (y <= best[i]) continue;
          best[i] = y;
          input[i] = x[i];
          place[i] = static_cast<unsigned>(r * e.kernel + s);
        }
      }
    }
    unsigned passes = 0;
    for (int i = 0; i < 8; ++i) passes |= (best[i] > 0 ? 1U : 0U) << i;
    const std::int64_t at = ElementOf(pixel, padded) + track.channel;
    Store8(best, dst + at);
    if (chosen == nullptr) continue;
    Store8(input, chosen + at);
    *reinterpret_cast<uint2*>(winners + at) =
        make_uint2(place[0] | place[1] << 8 | place[2] << 16 | place[3] << 24,
                   place[4] | place[5] << 8 | place[6] << 16 | place[7] << 24);
    mask[at / 8] = static_cast<std::uint8_t>(passes);
  }
}

// The gradient of one pixel of src: of all windows that chose it.
template <typename T>
__device__ void GatherGradient(const T* diff_dst, const std::uint8_t* winners, const Extents& e,
                               int pixel, int padded, int channel, float (&gradient)[8]) {
  for (int i = 0; i < 8; ++i) gradient[i] = 0;
  const int n = pixel / (e.height * e.width);
  const int down = pixel / e.width % e.height + e.padding;
  const int across = pixel % e.width + e.padding;
  const int first_h = max((down - e.kernel + e.stride) / e.stride, 0);
  const int first_w = max((across - e.kernel + e.stride) / e.stride, 0);
  for (int h = first_h; h <= min(down / e.stride, e.out_height - 1); ++h) {
    for (int w = first_w; w <= min(across / e.stride, e.out_width - 1); ++w) {
      const auto place =
          static_cast<unsigned>((down - h * e.stride) * e.kernel + across - w * e.stride);
      const std::int64_t window =
          ElementOf((n * e.out_height + h) * e.out_width + w, padded) + channel;
      const uint2 places = *reinterpret_cast<const uint2*>(winners + window);
      float g[8];
      Load8(diff_dst + window, g);
      for (int i = 0; i < 8; ++i) {
        const unsigned winner = (i < 4 ? places.x : places.y) >> i % 4 * 8 & 0xFFU;
        if (winner == place) gradient[i] += g[i];
      }
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 2)
    DifferentiatePooled(const T* src, const T* diff_dst, const std::uint8_t* winners, Extents e,
                        const float* means, BackwardCoefficients by, int pixels, int padded,
                        int columns, T* diff_src) {
  const Track track = TrackOf(columns);
  if (track.channel >= padded) return;
  float mean[8];
  float of_gradient[8];
  float of_input[8];
  float rest[8];
  LoadChannels(means, track.channel, mean);
  LoadChannels(by.of_gradient, track.channel, of_gradient);
  LoadChannels(by.of_input, track.channel, of_input);
  LoadChannels(by.rest, track.channel, rest);
  for (int pixel = track.first; pixel < pixels; pixel += track.step) {
    const std::int64_t at = ElementOf(pixel, padded) + track.channel;
    const Eight<T> input = LoadEight(src + at);
    float gradient[8];
    GatherGradient(diff_dst, winners, e, pixel, padded, track.channel, gradient);
    float x[8];
    Widen(input, x);
    for (int i = 0; i < 8; ++i) {
      x[i] = of_gradient[i] * gradient[i] + (of_input[i] * (x[i] - mean[i]) + rest[i]);
    }
    Store8(x, diff_src + at);
  }
}

// The shape that dst of the pool has, for the passes over it.
NormShape PooledShape(const NormShape& norm, const PoolShape& pool) {
  NormShape shape = norm;
  shape.pixels = pool.samples * pool.out_height * pool.out_width;
  return shape;
}

}  // namespace

void TransformPixelsToBlocks(const PixelsCall& call, DType dtype, void* dst, CUstream_st* stream) {
  const std::int64_t down = BlocksAcross(call.height);
  const std::int64_t across = BlocksAcross(call.width);
  WithElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(ToBlocks<T>, BlocksFor(call.samples * down * across), kThreads, stream, call, down,
           across, static_cast<T*>(dst));
  });
}

void FilterToBlocks(const void* filter, DType dtype, std::int64_t filters, void* blocks,
                    CUstream_st* stream) {
  WithElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(FilterTo<T>, BlocksFor(filters * kBlockFilter), kThreads, stream,
           static_cast<const T*>(filter), filters, static_cast<T*>(blocks));
  });
}

void FilterFromBlocks(const void* blocks, DType dtype, std::int64_t filters, void* filter,
                      CUstream_st* stream) {
  WithElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(FilterFrom<T>, BlocksFor(filters * kPixelFilter), kThreads, stream,
           static_cast<const T*>(blocks), filters, static_cast<T*>(filter));
  });
}

void RunPooledNormForward(const NormShape& norm, const PoolShape& pool,
                          const NormParameters& parameters, const PooledNormForward& call,
                          CUstream_st* stream) {
  const NormForward& c = call.norm;
  const Coefficients by =
      batch_norm::FindCoefficients(norm, parameters, c.src, c.of_batch, c.saved, c.scratch, stream);
  const NormShape pooled = PooledShape(norm, pool);
  const Sweep sweep = SweepOf(pooled);
  WithElement(norm.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(NormalizeAndPool<T>, sweep.grid(), kThreads, stream, static_cast<const T*>(c.src), by,
           ExtentsOf(pool), static_cast<int>(pooled.pixels), norm.padded, sweep.columns,
           static_cast<T*>(call.dst), static_cast<T*>(call.chosen), call.winners, call.mask);
  });
}

void RunPooledNormBackward(const NormShape& norm, const PoolShape& pool, const float* scale,
                           const PooledNormBackward& call, CUstream_st* stream) {
  const NormBackward& c = call.norm;
  const int padded = norm.padded;
  const float* mean = c.saved;
  const float* inverse = c.saved + padded;
  float* partial = c.scratch + 3 * padded;
  const BackwardCoefficients by = {c.scratch, c.scratch + padded, c.scratch + 2 * padded};
  const NormShape pooled = PooledShape(norm, pool);
  const Sweep of_sums = SweepOf(pooled);
  const Sweep sweep = SweepOf(norm);
  WithElement(norm.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* diff_dst = static_cast<const T*>(call.diff_dst);
    // Elements that were not chosen have no gradient: the sums are over the windows.
    Launch(batch_norm::GradientSums<T>, of_sums.grid(), kThreads, stream,
           static_cast<const T*>(call.chosen), call.mask, diff_dst, mean, inverse,
           static_cast<int>(pooled.pixels), padded, of_sums.columns, partial);
    batch_norm::FinishGradientSums(norm, of_sums, partial, scale, inverse, c.of_batch, c.diff_scale,
                                   c.diff_shift, by, stream);
    Launch(DifferentiatePooled<T>, sweep.grid(), kThreads, stream, static_cast<const T*>(c.src),
           diff_dst, call.winners, ExtentsOf(pool), mean, by, static_cast<int>(norm.pixels), padded,
           sweep.columns, static_cast<T*>(c.diff_src));
  });
}

}  // namespace trainer
