// SPDX-License-Identifier: Apache-2.0

#include <limits>

#include "trainer/backend/cuda/batch_norm_kernels.h"
#include "trainer/backend/cuda/batch_norm_passes.cuh"

namespace trainer {
namespace batch_norm {
namespace {

// Partial sums are added up by kLanes threads for each of kLaneChannels channels.
constexpr int kLanes = 64;
constexpr int kLaneChannels = 16;
constexpr int kLoadsAtOnce = 4;
// Blocks on a multiprocessor at once of a pass that writes: twice the loads take more registers,
// and so does a gate by the input.
constexpr int WritersAtOnce(int depth, Gate gate = Gate::kMask) {
  return depth == 1 && gate == Gate::kMask ? kBlocksAtOnce : 2;
}

// The sums of x - x0 and its square, where x0 is the channel's first value: squares of large
// numbers would lose what tells them apart.
template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    BatchSums(const T* src, int pixels, int padded, int columns, float* partial) {
  constexpr int kAtOnce = 4 * kPixelsAtOnce<T>;  // there is no other tensor
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

// The channel of a thread that adds up partial sums.
__device__ int LaneChannel() {
  return static_cast<int>(blockIdx.x) * kLaneChannels + static_cast<int>(threadIdx.x);
}

// Adds up the partial sums of LaneChannel(): right in the threads of lane 0.
struct TwoSums {
  float first, second;
};
__device__ TwoSums SumOfPartials(const float* partial, int blocks, int padded) {
  __shared__ float sums[2][kLanes][kLaneChannels];
  const int lane = static_cast<int>(threadIdx.y);
  const int column = static_cast<int>(threadIdx.x);
  const int channel = LaneChannel();
  TwoSums own = {0, 0};
  for (int first = lane; channel < padded && first < blocks; first += kLoadsAtOnce * kLanes) {
    TwoSums loaded[kLoadsAtOnce] = {};
    for (int u = 0; u < kLoadsAtOnce; ++u) {
      const int block = first + u * kLanes;
      if (block >= blocks) continue;
      const float* from = partial + static_cast<std::int64_t>(block) * 2 * padded + channel;
      loaded[u] = {from[0], from[padded]};
    }
    for (const TwoSums& sums_of_block : loaded) {
      own.first += sums_of_block.first;
      own.second += sums_of_block.second;
    }
  }
  sums[0][lane][column] = own.first;
  sums[1][lane][column] = own.second;
  for (int half = kLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane >= half) continue;
    sums[0][lane][column] += sums[0][lane + half][column];
    sums[1][lane][column] += sums[1][lane + half][column];
  }
  return {sums[0][lane][column], sums[1][lane][column]};
}

template <typename T>
__global__ void FinishBatch(const T* src, const float* partial, int blocks, std::int64_t pixels,
                            int padded, float* means, float* variances) {
  const TwoSums sums = SumOfPartials(partial, blocks, padded);
  const int channel = LaneChannel();
  if (threadIdx.y != 0 || channel >= padded) return;
  const float count = static_cast<float>(pixels);
  const float moved = sums.first / count;
  means[channel] = ToFloat(src[channel]) + moved;
  variances[channel] = fmaxf(sums.second / count - moved * moved, 0.0F);
}

__global__ void FinishGradient(const float* partial, int blocks, std::int64_t pixels, int channels,
                               int padded, const float* scale, const float* inverse, bool of_batch,
                               float* diff_scale, float* diff_shift, BackwardCoefficients to) {
  const TwoSums sums = SumOfPartials(partial, blocks, padded);
  const int channel = LaneChannel();
  if (threadIdx.y != 0 || channel >= padded) return;
  const bool is_used = channel < channels;
  const float factor = is_used ? scale[channel] * inverse[channel] : 0.0F;
  const float share = of_batch ? factor / static_cast<float>(pixels) : 0.0F;
  to.of_gradient[channel] = factor;
  to.of_input[channel] = -share * inverse[channel] * sums.second;
  to.rest[channel] = -share * sums.first;
  if (!is_used) return;
  diff_scale[channel] = sums.second;
  diff_shift[channel] = sums.first;
}

// `mask` (or null) gets where the ReLU passes.
template <typename T, bool adds, int depth>
__global__ void __launch_bounds__(kThreads, WritersAtOnce(depth))
    Normalize(const T* src, const T* residual, Statistics of, bool relu, int pixels, int columns,
              int waves, T* dst, std::uint8_t* mask) {
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
    unsigned passes = 0;
    float y[8];
    float added[8];
    Widen(x[u], y);
    Widen(more[u], added);
    for (int i = 0; i < 8; ++i) {
      y[i] = channels.Normalize(i, y[i]) + added[i];
      if (y[i] > 0) passes |= 1U << i;
      if (relu && y[i] < 0) y[i] = 0;  // what is not a number stays it
    }
    Store8(y, dst + at);
    if (mask != nullptr) mask[at / 8] = static_cast<std::uint8_t>(passes);
  };
  Walk<kAtOnce, From::kEnd>(track, pixels, of.padded, load, write);
}

// What a convolution applies.  The offset belongs to the factor as it was rounded, so that the mean
// still goes where it should; one that the type cannot hold is the nearest that it can.
template <typename T>
__global__ void FindApplied(Statistics of, float largest, T* applied) {
  const int channel = static_cast<int>(Item()) * 8;
  if (channel >= of.padded) return;
  const ForwardChannels channels(of, Track{channel, 0, 1, 1});
  Store8(channels.factor, applied + channel);
  float rounded[8];
  Load8(applied + channel, rounded);
  float offset[8];
  for (int i = 0; i < 8; ++i) {
    offset[i] = channels.shift[i] - channels.mean[i] * rounded[i];
    if (fabsf(offset[i]) > largest) offset[i] = copysignf(largest, offset[i]);
  }
  Store8(offset, applied + of.padded + channel);
}

template <typename T, int depth, Gate gate>
__global__ void __launch_bounds__(kThreads, WritersAtOnce(depth, gate))
    Differentiate(const T* src, const void* gate_of, const T* diff_dst, const float* means,
                  BackwardCoefficients by, int pixels, int padded, int columns, int waves,
                  T* diff_src, T* diff_residual) {
  constexpr int kAtOnce = depth * kPixelsAtOnce<T>;
  const Track track = TrackOf(columns, pixels, waves);
  if (track.channel >= padded) return;
  const GateChannels<T, gate> relu(gate_of, padded, track.channel);
  const BackwardChannels channels(means, by, track.channel);
  Eight<T> x[kAtOnce];
  Eight<T> g[kAtOnce];
  unsigned loaded[kAtOnce];
  const auto load = [&](int u, std::int64_t at) {
    x[u] = LoadEight(src + at);
    g[u] = LoadEight(diff_dst + at);
    loaded[u] = relu.Load(at);
  };
  const auto write = [&](int u, std::int64_t at) {
    float dx[8];
    float gradient[8];
    Widen(x[u], dx);
    Widen(g[u], gradient);
    const unsigned passes = relu.Passes(loaded[u], dx);
    for (int i = 0; i < 8; ++i) {
      if ((passes >> i & 1U) == 0) gradient[i] = 0;
      dx[i] = channels.Differentiate(i, gradient[i], dx[i]);
    }
    if (diff_residual != nullptr) Store8(gradient, diff_residual + at);
    Store8(dx, diff_src + at);
  };
  Walk<kAtOnce, From::kEnd>(track, pixels, padded, load, write);
}

dim3 LaneGrid(int padded) {
  return dim3(static_cast<unsigned>((padded + kLaneChannels - 1) / kLaneChannels));
}

}  // namespace

void FinishGradientSums(const NormShape& shape, const Sweep& sweep, const float* partial,
                        const float* scale, const float* inverse, bool of_batch, float* diff_scale,
                        float* diff_shift, const BackwardCoefficients& to, CUstream_st* stream) {
  Launch(FinishGradient, LaneGrid(shape.padded), dim3(kLaneChannels, kLanes), stream, partial,
         sweep.blocks, shape.pixels, shape.channels, shape.padded, scale, inverse, of_batch,
         diff_scale, diff_shift, to);
}

Statistics FindStatistics(const NormShape& shape, const NormParameters& parameters,
                          const NormSource& src, bool of_batch, float* saved, float* scratch,
                          CUstream_st* stream) {
  const int padded = shape.padded;
  Statistics of = {.parameters = parameters,
                   .first = parameters.running_mean,
                   .second = parameters.running_variance,
                   .are_sums = of_batch && src.sums != nullptr,
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
  const Sweep sweep = SweepOf(shape);
  float* means = scratch;
  float* variances = scratch + padded;
  float* partial = scratch + 2 * padded;
  WithElement(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* values = static_cast<const T*>(src.values);
    Launch(BatchSums<T>, sweep.grid(), kThreads, stream, values, shape.pixels, padded,
           sweep.columns, partial);
    Launch(FinishBatch<T>, LaneGrid(padded), dim3(kLaneChannels, kLanes), stream, values, partial,
           sweep.blocks, shape.pixels, padded, means, variances);
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

std::int64_t NormSavedFloats(const NormShape& shape) { return std::int64_t{2} * shape.padded; }

std::int64_t NormMaskBytes(const NormShape& shape) { return shape.pixels * (shape.padded / 8); }

void RunNormForward(const NormShape& shape, const NormParameters& parameters,
                    const NormForward& call, CUstream_st* stream) {
  const batch_norm::Statistics of = batch_norm::FindStatistics(
      shape, parameters, call.src, call.of_batch, call.saved, call.scratch, stream);
  const batch_norm::Sweep sweep =
      batch_norm::SweepOf(shape, batch_norm::WritersAtOnce(call.pace.depth));
  const int waves = call.pace.waves;
  WithElement(shape.dtype, [&](auto zero) {
    batch_norm::WithDepth(call.pace.depth, [&](auto depth) {
      using T = decltype(zero);
      const auto normalize = call.residual == nullptr ? batch_norm::Normalize<T, false, depth>
                                                      : batch_norm::Normalize<T, true, depth>;
      Launch(normalize, sweep.grid(waves), kThreads, stream, static_cast<const T*>(call.src.values),
             static_cast<const T*>(call.residual), of, call.relu, shape.pixels, sweep.columns,
             waves, static_cast<T*>(call.dst), call.mask);
    });
  });
}

std::int64_t NormAppliedBytes(const NormShape& shape) {
  return 2 * static_cast<std::int64_t>(shape.padded) *
         static_cast<std::int64_t>(SizeOf(shape.dtype));
}

void RunNormUnapplied(const NormShape& shape, const NormParameters& parameters,
                      const NormUnapplied& call, CUstream_st* stream) {
  const batch_norm::Statistics of = batch_norm::FindStatistics(
      shape, parameters, call.src, call.of_batch, call.saved, call.scratch, stream);
  constexpr float kLargestHalf = 65504;
  const float largest =
      shape.dtype == DType::kFloat16 ? kLargestHalf : std::numeric_limits<float>::max();
  WithElement(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    Launch(batch_norm::FindApplied<T>, BlocksFor(shape.padded / 8), kThreads, stream, of, largest,
           static_cast<T*>(call.applied));
  });
}

namespace batch_norm {
namespace {

// `sums_depth` keeps the registers of GradientSums within what three blocks leave.
template <typename T, Gate gate, int depth, int sums_depth>
void QueueBackward(const NormShape& shape, const float* scale, const NormBackward& call,
                   const void* gate_of, CUstream_st* stream) {
  const Sweep sums = SweepOf(shape);
  const Sweep sweep = SweepOf(shape, WritersAtOnce(depth, gate));
  const int padded = shape.padded;
  const int waves = call.pace.waves;
  const float* mean = call.saved;
  const float* inverse = call.saved + padded;
  float* partial = call.scratch + 3 * padded;
  const BackwardCoefficients by = {call.scratch, call.scratch + padded, call.scratch + 2 * padded};
  const auto* src = static_cast<const T*>(call.src);
  const auto* diff_dst = static_cast<const T*>(call.diff_dst);
  Launch(GradientSums<T, sums_depth, gate>, sums.grid(), kThreads, stream, src, gate_of, diff_dst,
         mean, inverse, shape.pixels, padded, sums.columns, partial);
  FinishGradientSums(shape, sums, partial, scale, inverse, call.of_batch, call.diff_scale,
                     call.diff_shift, by, stream);
  Launch(Differentiate<T, depth, gate>, sweep.grid(waves), kThreads, stream, src, gate_of, diff_dst,
         mean, by, shape.pixels, padded, sweep.columns, waves, static_cast<T*>(call.diff_src),
         static_cast<T*>(call.diff_residual));
}

}  // namespace
}  // namespace batch_norm

void RunNormBackward(const NormShape& shape, const float* scale, const NormBackward& call,
                     CUstream_st* stream) {
  using batch_norm::Gate;
  WithElement(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    batch_norm::WithDepth(call.pace.depth, [&](auto depth) {
      if (call.applied == nullptr) {
        batch_norm::QueueBackward<T, Gate::kMask, depth, depth>(shape, scale, call, call.mask,
                                                                stream);
      } else {
        batch_norm::QueueBackward<T, Gate::kInput, depth, 1>(shape, scale, call, call.applied,
                                                             stream);
      }
    });
  });
}

}  // namespace trainer
