// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/norms/batch_norm_passes.cuh"
#include "trainer/backend/cuda/runtime/element.cuh"
#include "trainer/backend/cuda/stem/stem_filters.cuh"
#include "trainer/backend/cuda/stem/stem_kernels.h"
#include "trainer/backend/cuda/stem/stem_windows.cuh"

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
  SynchronizeGridDependencies();
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

template <typename T, int channels>
__global__ void FilterTo(const T* filter, std::int64_t filters, T* blocks) {
  SynchronizeGridDependencies();
  constexpr int kFilter = kBlockFilter<channels>;
  const std::int64_t i = Item();
  if (i >= filters * kFilter) return;
  const int from = PlaceInPixels<channels>(static_cast<int>(i % kFilter));
  Assign(blocks[i], from < 0 ? 0.0F : ToFloat(filter[i / kFilter * kPixelFilter + from]));
}

template <typename T, int channels>
__global__ void FilterFrom(const T* blocks, std::int64_t filters, T* filter) {
  SynchronizeGridDependencies();
  const std::int64_t i = Item();
  if (i >= filters * kPixelFilter) return;
  const int from = PlaceInBlocks<channels>(static_cast<int>(i % kPixelFilter));
  Assign(filter[i],
         from < 0 ? 0.0F : ToFloat(blocks[i / kPixelFilter * kBlockFilter<channels> + from]));
}

template <typename T>
__global__ void __launch_bounds__(kThreads, kPoolBlocksAtOnce)
    NormalizeAndPool(const T* src, Statistics of, Extents e, int windows, int columns, T* dst,
                     Kept kept) {
  SynchronizeGridDependencies();
  constexpr int kAtOnce = sizeof(T) == sizeof(float) ? 3 : 9;  // as many as registers have room for
  const int padded = of.padded;
  const Track track = TrackOf(columns, windows);
  if (track.channel >= padded) return;
  const ForwardChannels channels(of, track);
  for (int first = track.first; first < windows; first += track.step) {
    const int index = windows - 1 - first;
    const Window window = WindowOf(index, e);
    float best[8] = {};  // of those that the ReLU lets through, or not a number, which stays
    float input[8] = {};
    unsigned winner[8];
    for (int i = 0; i < 8; ++i) winner[i] = kNobody;
    for (int line = 0; line < 9; line += kAtOnce) {
      Eight<T> x[kAtOnce];
      bool is_there[kAtOnce];
      for (int u = 0; u < kAtOnce; ++u) {
        const int place = line + u;
        const int h = 2 * window.h - 1 + place / 3;
        const int w = 2 * window.w - 1 + place % 3;
        is_there[u] = h >= 0 && h < e.height && w >= 0 && w < e.width;
        if (!is_there[u]) continue;
        const int pixel = (window.n * e.height + h) * e.width + w;
        x[u] = LoadEight(src + ElementOf(pixel, padded) + track.channel);
      }
      for (int u = 0; u < kAtOnce; ++u) {
        if (!is_there[u]) continue;
        float value[8];
        Widen(x[u], value);
        for (int i = 0; i < 8; ++i) {
          const float y = channels.Normalize(i, value[i]);
          if (y <= best[i] || isnan(best[i])) continue;
          best[i] = y;
          input[i] = value[i];
          winner[i] = static_cast<unsigned>(line + u);
        }
      }
    }
    const std::int64_t at = ElementOf(index, padded) + track.channel;
    Store8(best, dst + at);
    KeepChosen<T>(kept, at, input, winner);
  }
}

// A thread has a quad.
template <typename T>
__global__ void __launch_bounds__(kThreads, kPoolBlocksAtOnce)
    DifferentiatePooled(const T* src, const T* diff_dst, const std::uint8_t* winners, Extents e,
                        const float* means, BackwardCoefficients by, int quads, int padded,
                        int columns, T* diff_src) {
  SynchronizeGridDependencies();
  const Track track = TrackOf(columns, quads);
  if (track.channel >= padded) return;
  const BackwardChannels channels(means, by, track.channel);
  for (int first = track.first; first < quads; first += track.step) {
    const int index = quads - 1 - first;
    const Window quad = WindowOf(index, e);
    ChoicesOfQuad<T> choices;
    Eight<T> x[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      choices.Load(i, diff_dst, winners, quad, e, padded, track.channel);
      const int h = 2 * quad.h + i / 2;
      const int w = 2 * quad.w + i % 2;
      if (h >= e.height || w >= e.width) continue;
      const int pixel = (quad.n * e.height + h) * e.width + w;
      x[i] = LoadEight(src + ElementOf(pixel, padded) + track.channel);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int h = 2 * quad.h + i / 2;
      const int w = 2 * quad.w + i % 2;
      if (h >= e.height || w >= e.width) continue;
      float gradient[8] = {};
      choices.AddOfPixel(i, gradient);
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
    Launch(FilterTo<T, kPaddedBlockChannels>,
           BlocksFor(filters * kBlockFilter<kPaddedBlockChannels>), kThreads, stream,
           static_cast<const T*>(filter), filters, static_cast<T*>(blocks));
  });
}

void FilterToLines(const void* filter, DType dtype, std::int64_t filters, void* lines,
                   CUstream_st* stream) {
  WithElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(FilterTo<T, kBlockChannels>, BlocksFor(filters * kFilterLine), kThreads, stream,
           static_cast<const T*>(filter), filters, static_cast<T*>(lines));
  });
}

void FilterFromBlocks(const void* blocks, DType dtype, std::int64_t filters, void* filter,
                      CUstream_st* stream) {
  WithElement(dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(FilterFrom<T, kPaddedBlockChannels>, BlocksFor(filters * kPixelFilter), kThreads, stream,
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
           static_cast<T*>(call.dst), Kept{call.chosen, call.winners, call.mask});
  });
}

void RunPooledNormSums(const NormShape& norm, const StemImages& images, const float* scale,
                       const PooledNormBackward& call, CUstream_st* stream) {
  const NormBackward& c = call.norm;
  const float* inverse = c.saved + norm.padded;
  float* partial = c.scratch + 3 * norm.padded;
  const NormShape pooled = PooledShape(norm, images);
  const Sweep sums = SweepOf(pooled);
  WithElement(norm.dtype, [&](auto zero) {
    using T = decltype(zero);
    // Elements that were not chosen have no gradient: the sums are over the windows.
    Launch(batch_norm::GradientSums<T>, sums.grid(), kThreads, stream,
           static_cast<const T*>(call.chosen), call.mask, static_cast<const T*>(call.diff_dst),
           c.saved, inverse, static_cast<int>(pooled.pixels), norm.padded, sums.columns, partial);
  });
  batch_norm::FinishGradientSums(norm, {partial, sums.blocks}, scale, inverse, c.of_batch,
                                 c.diff_scale, c.diff_shift,
                                 batch_norm::CoefficientsIn(c.scratch, norm.padded), stream);
}

void RunPooledNormBackward(const NormShape& norm, const StemImages& images, const float* scale,
                           const PooledNormBackward& call, CUstream_st* stream) {
  RunPooledNormSums(norm, images, scale, call, stream);
  const NormBackward& c = call.norm;
  const NormShape pooled = PooledShape(norm, images);
  const Sweep sweep = SweepOf(pooled, kPoolBlocksAtOnce);
  WithElement(norm.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(DifferentiatePooled<T>, sweep.grid(), kThreads, stream, static_cast<const T*>(c.src),
           static_cast<const T*>(call.diff_dst), call.winners, ExtentsOf(images), c.saved,
           batch_norm::CoefficientsIn(c.scratch, norm.padded), static_cast<int>(pooled.pixels),
           norm.padded, sweep.columns, static_cast<T*>(c.diff_src));
  });
}

}  // namespace trainer
