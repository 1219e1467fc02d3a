// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/batch_norm_passes.cuh"
#include "trainer/backend/cuda/element.cuh"
#include "trainer/backend/cuda/stem_kernels.h"

namespace trainer {
namespace {

using batch_norm::BackwardChannels;
using batch_norm::BackwardCoefficients;
using batch_norm::ElementOf;
using batch_norm::ForwardChannels;
using batch_norm::Statistics;
using batch_norm::Sweep;
using batch_norm::SweepOf;
using batch_norm::Track;
using batch_norm::TrackOf;

// The passes that pool have more in their registers than those of batch norm alone.
constexpr int kPoolBlocksAtOnce = 2;
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
__global__ void ToBlocks(PixelsCall call, int down, int across, int blocks, T* dst) {
  if (Item() >= blocks) return;
  const int i = static_cast<int>(Item());  // dividing 64 bits takes long
  const std::int64_t left = (i % across - 2) * 2;
  const std::int64_t top = (i / across % down - 2) * 2;
  const std::int64_t n = i / (across * down);
  const float lambda = call.lambda == nullptr ? 1.0F : call.lambda[n];
  float sum[kPaddedBlockChannels] = {};
  AddBlock(call, n, top, left, lambda, sum);
  if (lambda != 1) AddBlock(call, call.samples - 1 - n, top, left, 1 - lambda, sum);
  float half[8];
  for (int part = 0; part < 2; ++part) {
    for (int c = 0; c < 8; ++c) half[c] = sum[part * 8 + c];
    Store8(half, dst + std::int64_t{i} * kPaddedBlockChannels + part * 8);
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

// The pool's windows are 3x3 pixels, 2 apart, the first one pixel outside: the number of windows is
// that of quads, 2x2 pixels from (0, 0) on.  In 32 bits, since dividing 64 takes long.
struct Extents {
  int height, width, out_height, out_width;
};
struct Window {
  int n, h, w;
};
__device__ Window WindowOf(int index, const Extents& e) {
  return {index / (e.out_height * e.out_width), index / e.out_width % e.out_height,
          index % e.out_width};
}

template <typename T>
__global__ void __launch_bounds__(kThreads, kPoolBlocksAtOnce)
    NormalizeAndPool(const T* src, Statistics of, Extents e, int windows, int columns, T* dst,
                     T* chosen, std::uint8_t* winners, std::uint8_t* mask) {
  const int padded = of.padded;
  const Track track = TrackOf(columns, windows);
  if (track.channel >= padded) return;
  const ForwardChannels channels(of, track);
  for (int first = track.first; first < windows; first += track.step) {
    const int index = windows - 1 - first;
    const Window window = WindowOf(index, e);
    Eight<T> x[9];
    bool is_there[9];
    for (int place = 0; place < 9; ++place) {
      const int h = 2 * window.h - 1 + place / 3;
      const int w = 2 * window.w - 1 + place % 3;
      is_there[place] = h >= 0 && h < e.height && w >= 0 && w < e.width;
      if (!is_there[place]) continue;
      const int pixel = (window.n * e.height + h) * e.width + w;
      x[place] = LoadEight(src + ElementOf(pixel, padded) + track.channel);
    }
    float best[8] = {};  // of those that the ReLU lets through, or not a number, which stays
    float input[8] = {};
    unsigned winner[8];
    for (int i = 0; i < 8; ++i) winner[i] = kNobody;
    for (int place = 0; place < 9; ++place) {
      if (!is_there[place]) continue;
      float value[8];
      Widen(x[place], value);
      for (int i = 0; i < 8; ++i) {
        const float y = channels.Normalize(i, value[i]);
        if (y <= best[i] || isnan(best[i])) continue;
        best[i] = y;
        input[i] = value[i];
        winner[i] = static_cast<unsigned>(place);
      }
    }
    unsigned passes = 0;
    for (int i = 0; i < 8; ++i) passes |= (winner[i] != kNobody ? 1U : 0U) << i;
    const std::int64_t at = ElementOf(index, padded) + track.channel;
    Store8(best, dst + at);
    if (chosen == nullptr) continue;
    Store8(input, chosen + at);
    *reinterpret_cast<uint2*>(winners + at) =
        make_uint2(winner[0] | winner[1] << 8 | winner[2] << 16 | winner[3] << 24,
                   winner[4] | winner[5] << 8 | winner[6] << 16 | winner[7] << 24);
    mask[at / 8] = static_cast<std::uint8_t>(passes);
  }
}

// The gradient of a window, and which of its pixels get it.
template <typename T>
struct Choice {
  Eight<T> gradient;
  uint2 winners;
};

// Adds the gradient of a window where it chose `place`.
template <typename T>
__device__ void AddChosen(const Choice<T>& choice, unsigned place, float (&sum)[8]) {
  float gradient[8];
  Widen(choice.gradient, gradient);
  for (int i = 0; i < 8; ++i) {
    const unsigned winner = (i < 4 ? choice.winners.x : choice.winners.y) >> i % 4 * 8 & 0xFFU;
    if (winner == place) sum[i] += gradient[i];
  }
}

// A thread has a quad, which only the window that starts in it and its neighbours to the right and
// below can have chosen from.
template <typename T>
__global__ void __launch_bounds__(kThreads, kPoolBlocksAtOnce)
    DifferentiatePooled(const T* src, const T* diff_dst, const std::uint8_t* winners, Extents e,
                        const float* means, BackwardCoefficients by, int quads, int padded,
                        int columns, T* diff_src) {
  const Track track = TrackOf(columns, quads);
  if (track.channel >= padded) return;
  const BackwardChannels channels(means, by, track.channel);
  for (int first = track.first; first < quads; first += track.step) {
    const int index = quads - 1 - first;
    const Window quad = WindowOf(index, e);
    Choice<T> choices[4];
    Eight<T> x[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int down = i / 2;
      const int across = i % 2;
      choices[i] = {{}, make_uint2(~0U, ~0U)};
      if (quad.h + down < e.out_height && quad.w + across < e.out_width) {
        const std::int64_t at =
            ElementOf(index + down * e.out_width + across, padded) + track.channel;
        choices[i] = {LoadEight(diff_dst + at), *reinterpret_cast<const uint2*>(winners + at)};
      }
      const int h = 2 * quad.h + down;
      const int w = 2 * quad.w + across;
      if (h >= e.height || w >= e.width) continue;
      const int pixel = (quad.n * e.height + h) * e.width + w;
      x[i] = LoadEight(src + ElementOf(pixel, padded) + track.channel);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int down = i / 2;
      const int across = i % 2;
      const int h = 2 * quad.h + down;
      const int w = 2 * quad.w + across;
      if (h >= e.height || w >= e.width) continue;
      // Row 2h is row 1 of window h; row 2h + 1 is row 2 of it and row 0 of the next.
      float gradient[8] = {};
#pragma unroll
      for (int below = 0; below < 2; ++below) {
#pragma unroll
        for (int right = 0; right < 2; ++right) {
          if (below > down || right > across) continue;
          const int row = 1 + down - 2 * below;
          const int column = 1 + across - 2 * right;
          AddChosen(choices[below * 2 + right], static_cast<unsigned>(row * 3 + column), gradient);
        }
      }
      float dx[8];
      Widen(x[i], dx);
      for (int c = 0; c < 8; ++c) {
        dx[c] = channels.Differentiate(c, gradient[c], dx[c]);
      }
      const int pixel = (quad.n * e.height + h) * e.width + w;
      Store8(dx, diff_src + ElementOf(pixel, padded) + track.channel);
    }
  }
}

// The shape that dst of the pool has, for the passes over it.
NormShape PooledShape(const NormShape& norm, const StemImages& images) {
  NormShape shape = norm;
  shape.pixels = images.samples * WindowsAcross(images.height) * WindowsAcross(images.width);
  return shape;
}

Extents ExtentsOf(const StemImages& images) {
  return {static_cast<int>(images.height), static_cast<int>(images.width),
          static_cast<int>(WindowsAcross(images.height)),
          static_cast<int>(WindowsAcross(images.width))};
}

}  // namespace

void TransformPixelsToBlocks(const PixelsCall& call, DType dtype, void* dst, CUstream_st* stream) {
  const std::int64_t down = BlocksAcross(call.height);
  const std::int64_t across = BlocksAcross(call.width);
  const std::int64_t blocks = call.samples * down * across;
  DDL_CHECK(blocks < std::int64_t{1} << 31);
  WithElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(ToBlocks<T>, BlocksFor(blocks), kThreads, stream, call, static_cast<int>(down),
           static_cast<int>(across), static_cast<int>(blocks), static_cast<T*>(dst));
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

void RunPooledNormForward(const NormShape& norm, const StemImages& images,
                          const NormParameters& parameters, const PooledNormForward& call,
                          CUstream_st* stream) {
  const NormForward& c = call.norm;
  const Statistics of =
      batch_norm::FindStatistics(norm, parameters, c.src, c.of_batch, c.saved, c.scratch, stream);
  const NormShape pooled = PooledShape(norm, images);
  const Sweep sweep = SweepOf(pooled, kPoolBlocksAtOnce);
  WithElement(norm.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(NormalizeAndPool<T>, sweep.grid(), kThreads, stream, static_cast<const T*>(c.src.values),
           of, ExtentsOf(images), static_cast<int>(pooled.pixels), sweep.columns,
           static_cast<T*>(call.dst), static_cast<T*>(call.chosen), call.winners, call.mask);
  });
}

void RunPooledNormBackward(const NormShape& norm, const StemImages& images, const float* scale,
                           const PooledNormBackward& call, CUstream_st* stream) {
  const NormBackward& c = call.norm;
  const int padded = norm.padded;
  const float* mean = c.saved;
  const float* inverse = c.saved + padded;
  float* partial = c.scratch + 3 * padded;
  const BackwardCoefficients by = {c.scratch, c.scratch + padded, c.scratch + 2 * padded};
  const NormShape pooled = PooledShape(norm, images);
  const Sweep sums = SweepOf(pooled);
  const Sweep sweep = SweepOf(pooled, kPoolBlocksAtOnce);
  WithElement(norm.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* diff_dst = static_cast<const T*>(call.diff_dst);
    // Elements that were not chosen have no gradient: the sums are over the windows.
    Launch(batch_norm::GradientSums<T>, sums.grid(), kThreads, stream,
           static_cast<const T*>(call.chosen), call.mask, diff_dst, mean, inverse,
           static_cast<int>(pooled.pixels), padded, sums.columns, partial);
    batch_norm::FinishGradientSums(norm, sums, partial, scale, inverse, c.of_batch, c.diff_scale,
                                   c.diff_shift, by, stream);
    Launch(DifferentiatePooled<T>, sweep.grid(), kThreads, stream, static_cast<const T*>(c.src),
           diff_dst, call.winners, ExtentsOf(images), mean, by, static_cast<int>(pooled.pixels),
           padded, sweep.columns, static_cast<T*>(c.diff_src));
  });
}

}  // namespace trainer
