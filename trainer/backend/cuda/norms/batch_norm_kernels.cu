// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/norms/batch_norm_kernels.h"
#include "trainer/backend/cuda/norms/batch_norm_passes.cuh"

namespace trainer {
namespace batch_norm {
namespace {

// The sums of x - x0 and its square, where x0 is the channel's first value: squares of large
// numbers would lose what tells them apart.
template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    BatchSums(const T* src, int pixels, int padded, int columns, float* partial) {
  SynchronizeGridDependencies();
  constexpr int kAtOnce = 3 * kPixelsAtOnce<T>;  // there is no other tensor
  const Track track = TrackOf(columns, pixels);
  float sum[8] = {};
  float squares[8] = {};
  if (track.channel < padded) {
    float origin[8];
    Load8(src + track.channel, origin);
    Eight<T> x[kAtOnce];
    const auto load = [&](int u, std::int64_t at) { x[u] = LoadEight(src + at); };
    const auto add = [&](int u, std::int64_t /*at*/) {
      float value[8];
      Widen(x[u], value);
      for (int i = 0; i < 8; ++i) {
        const float moved = value[i] - origin[i];
        sum[i] += moved;
        squares[i] += moved * moved;
      }
    };
    Walk<kAtOnce, From::kStart>(track, pixels, padded, load, add);
  }
  StorePartial(sum, squares, columns, padded, partial);
}

// Without `src` the sums are of x itself.
template <typename T>
__global__ void FinishBatch(const T* src, const float* partial, int blocks, std::int64_t pixels,
                            int padded, float* means, float* variances) {
  SynchronizeGridDependencies();
  const TwoSums sums = SumOfPartials(partial, blocks, padded);
  const int channel = LaneChannel();
  if (threadIdx.y != 0 || channel >= padded) return;
  const float count = static_cast<float>(pixels);
  const float moved = sums.first / count;
  means[channel] = (src == nullptr ? 0.0F : ToFloat(src[channel])) + moved;
  variances[channel] = fmaxf(sums.second / count - moved * moved, 0.0F);
}

// `mask` (or null) gets where the ReLU passes.
template <typename T, bool adds, int depth>
__global__ void __launch_bounds__(kThreads, WritersAtOnce(depth))
    Normalize(const T* src, const T* residual, Statistics of, bool relu, int pixels, int columns,
              int waves, T* dst, std::uint8_t* mask) {
  SynchronizeGridDependencies();
  constexpr int kAtOnce = depth * (adds ? 1 : 2) * kPixelsAtOnce<T>;
  const Track track = TrackOf(columns, pixels, waves);
  if (track.channel >= of.padded) return;
  const ForwardChannels channels(of, track);
  Eight<T> x[kAtOnce];
  Eight<T> more[kAtOnce] = {};
  const auto load = [&](int u, std::int64_t at) {
    x[u] = LoadEight(src + at);
    if (adds) more[u] = LoadEight(residual + at);
  };
  const auto write = [&](int u, std::int64_t at) {
    float y[8];
    float added[8];
    Widen(x[u], y);
    Widen(more[u], added);
    for (int i = 0; i < 8; ++i) y[i] = channels.Normalize(i, y[i]) + added[i];
    const unsigned passes = Rectify(y, relu);
    Store8(y, dst + at);
    if (mask != nullptr) mask[at / 8] = static_cast<std::uint8_t>(passes);
  };
  Walk<kAtOnce, From::kEnd>(track, pixels, of.padded, load, write);
}

}  // namespace

Statistics FindStatistics(const NormShape& shape, const NormParameters& parameters,
                          const NormSource& src, bool of_batch, float* saved, float* scratch,
                          CUstream_st* stream) {
  const int padded = shape.padded;
  Statistics of = {.parameters = parameters,
                   .first = parameters.running_mean,
                   .second = parameters.running_variance,
                   .are_sums = of_batch && src.sums != nullptr && src.partial_sums == 0,
                   .of_batch = of_batch,
                   .pixels = static_cast<float>(shape.pixels),
                   .channels = shape.channels,
                   .padded = padded,
                   .saved = saved};
  if (!of_batch) return of;
  if (of.are_sums) {
    of.first = src.sums;
    of.second = src.sums + padded;
    return of;
  }
  float* means = scratch;
  float* variances = scratch + padded;
  WithElement(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* origin = nullptr;
    NormPartialSums partial = {src.sums, src.partial_sums};
    if (src.sums == nullptr) {
      const Sweep sweep = SweepOf(shape);
      float* const own = scratch + 2 * padded;
      origin = static_cast<const T*>(src.values);
      partial = {own, sweep.blocks};
      Launch(BatchSums<T>, sweep.grid(), kThreads, stream, origin, shape.pixels, padded,
             sweep.columns, own);
    }
    Launch(FinishBatch<T>, LaneGrid(padded), dim3(kLaneChannels, kLanes), stream, origin,
           partial.values, partial.blocks, shape.pixels, padded, means, variances);
  });
  of.first = means;
  of.second = variances;
  return of;
}

}  // namespace batch_norm

std::int64_t NormScratchFloats(const NormShape& shape) {
  return (std::int64_t{2} * batch_norm::SweepOf(shape).blocks + 3) * shape.padded;
}

std::int64_t NormSumsFloats(const NormShape& shape) { return std::int64_t{2} * shape.padded; }

void RunNormSums(const NormShape& shape, const void* src, float* scratch, CUstream_st* stream) {
  const batch_norm::Sweep sweep = batch_norm::SweepOf(shape);
  WithElement(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(batch_norm::BatchSums<T>, sweep.grid(), kThreads, stream, static_cast<const T*>(src),
           shape.pixels, shape.padded, sweep.columns, scratch);
  });
}

std::int64_t NormSavedFloats(const NormShape& shape) { return std::int64_t{4} * shape.padded; }

std::int64_t NormMaskBytes(const NormShape& shape) { return shape.pixels * (shape.padded / 8); }

void RunNormForward(const NormShape& shape, const NormParameters& parameters,
                    const NormForward& call, CUstream_st* stream) {
  const batch_norm::Statistics of = batch_norm::FindStatistics(
      shape, parameters, call.src, call.of_batch, call.saved, call.scratch, stream);
  const batch_norm::Sweep sweep =
      batch_norm::SweepOf(shape, batch_norm::WritersAtOnce(call.config.depth));
  const int waves = call.config.waves;
  WithElement(shape.dtype, [&](auto zero) {
    batch_norm::WithDepth(call.config.depth, [&](auto depth) {
      using T = decltype(zero);
      const auto normalize = call.residual == nullptr ? batch_norm::Normalize<T, false, depth>
                                                      : batch_norm::Normalize<T, true, depth>;
      Launch(normalize, sweep.grid(waves), kThreads, stream, static_cast<const T*>(call.src.values),
             static_cast<const T*>(call.residual), of, call.relu, shape.pixels, sweep.columns,
             waves, static_cast<T*>(call.dst), call.mask);
    });
  });
}

}  // namespace trainer
