// SPDX-License-Identifier: Apache-2.0
//
// The passes of batch norm over rows of channels, for the kernels that are made of them.  Every
// thread keeps to its eight channels, whose coefficients stay in its registers, and goes down the
// pixels with several loads under way.  A pass that writes goes the other way from the pass of sums
// before it: what that one read last is still in the cache.

#pragma once

#include <algorithm>
#include <type_traits>

#include "trainer/backend/cuda/norms/batch_norm_kernels.h"
#include "trainer/backend/cuda/runtime/element.cuh"

namespace trainer {
namespace batch_norm {

// Blocks on a multiprocessor at once: as many registers for each thread as the passes need.
constexpr int kBlocksAtOnce = 3;
// Pixels whose loads are under way together, of each of two tensors.
template <typename T>
constexpr int kPixelsAtOnce = 4 / static_cast<int>(sizeof(T));

// Calls call(depth), a constant of NormLaunchConfig.
template <typename Call>
void WithDepth(int depth, const Call& call) {
  DDL_CHECK(depth == 1 || depth == 2);
  if (depth == 1) return call(std::integral_constant<int, 1>());
  return call(std::integral_constant<int, 2>());
}

struct Sweep {
  int columns = 0;  // threads across, each with 8 channels
  int groups = 0;   // blocks across
  int blocks = 0;   // blocks down

  // Of so many waves of these blocks.
  dim3 grid(int waves = 1) const {
    return dim3(static_cast<unsigned>(groups), static_cast<unsigned>(blocks * waves));
  }
};

// For a pass that is compiled for `blocks_at_once`: all its blocks run from the beginning.
inline Sweep SweepOf(const NormShape& shape, int blocks_at_once = kBlocksAtOnce) {
  constexpr int kMaxColumns = 32;
  DDL_CHECK(shape.pixels < std::int64_t{1} << 30);
  Sweep sweep;
  const int eights = shape.padded / 8;
  sweep.columns = 1;
  while (sweep.columns < eights && sweep.columns < kMaxColumns) sweep.columns *= 2;
  sweep.groups = (eights + sweep.columns - 1) / sweep.columns;
  const std::int64_t rows = kThreads / sweep.columns;
  const std::int64_t useful = std::max<std::int64_t>((shape.pixels + rows - 1) / rows, 1);
  const std::int64_t wanted = blocks_at_once * shape.sms / sweep.groups;
  sweep.blocks = static_cast<int>(std::clamp<std::int64_t>(wanted, 1, useful));
  return sweep;
}

// Where a thread of a sweep works.
struct Track {
  int channel;           // the first of eight; not there if >= padded
  int first, step, end;  // pixels
};
// The waves share the pixels in stretches, which come one after the other as blocks do: a block
// that is done early makes room for one of the next stretch.
__device__ inline Track TrackOf(int columns, int pixels, int waves = 1) {
  const int rows = kThreads / columns;
  const int thread = static_cast<int>(threadIdx.x);
  const int blocks = static_cast<int>(gridDim.y) / waves;
  const int wave = static_cast<int>(blockIdx.y) / blocks;
  const int block = static_cast<int>(blockIdx.y) % blocks;
  const int stretch = (pixels + waves - 1) / waves;
  const int begin = wave * stretch;
  const int end = begin + stretch < pixels ? begin + stretch : pixels;
  return {(static_cast<int>(blockIdx.x) * columns + thread % columns) * 8,
          begin + block * rows + thread / columns, blocks * rows, end};
}

// Fewer than 2^30 pixels, so that a track cannot leave the integers.
__device__ inline std::int64_t ElementOf(int pixel, int padded) {
  return static_cast<std::int64_t>(pixel) * padded;
}

// Goes over the pixels of a track, `at_once` of them together: load(u, at) of each, then use(u,
// at), where `at` is the first of the thread's eight elements.  u is a constant when the loops are
// unrolled, so that what is loaded stays in registers.  `pixels`: of the tensor.
enum class From : bool { kStart, kEnd };
template <int at_once, From from, typename Load, typename Use>
__device__ inline void Walk(const Track& track, int pixels, int padded, const Load& load,
                            const Use& use) {
  for (int first = track.first; first < track.end; first += at_once * track.step) {
    const auto with_each = [&](const auto& call) {
      for (int u = 0; u < at_once; ++u) {
        const int number = first + u * track.step;
        if (number >= track.end) continue;
        const int pixel = from == From::kStart ? number : pixels - 1 - number;
        call(u, ElementOf(pixel, padded) + track.channel);
      }
    };
    with_each(load);
    with_each(use);
  }
}

__device__ inline void LoadChannels(const float* src, int channel, float (&values)[8]) {
  for (int i = 0; i < 8; ++i) values[i] = src[channel + i];
}

// Where the ReLU passes, as bits of a mask; without `relu` the values stay what they are.
template <int count>
__device__ inline unsigned Rectify(float (&values)[count], bool relu = true) {
  unsigned passes = 0;
  for (int i = 0; i < count; ++i) {
    if (values[i] > 0) passes |= 1U << i;
    if (relu && values[i] < 0) values[i] = 0;  // what is not a number stays it
  }
  return passes;
}

// Two sums of each of 8 channels, added over the rows of the block; the first row stores them.
__device__ inline void StorePartial(const float (&first)[8], const float (&second)[8], int columns,
                                    int padded, float* partial) {
  __shared__ float sums[2][8][kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = 0; i < 8; ++i) {
    sums[0][i][thread] = first[i];
    sums[1][i][thread] = second[i];
  }
  for (int half = kThreads / 2; half >= columns; half /= 2) {
    __syncthreads();
    if (thread >= half) continue;
    for (int i = 0; i < 8; ++i) {
      sums[0][i][thread] += sums[0][i][thread + half];
      sums[1][i][thread] += sums[1][i][thread + half];
    }
  }
  const int channel = (static_cast<int>(blockIdx.x) * columns + thread) * 8;
  if (thread >= columns || channel >= padded) return;
  float* to = partial + static_cast<std::int64_t>(blockIdx.y) * 2 * padded + channel;
  for (int i = 0; i < 8; ++i) {
    to[i] = sums[0][i][thread];
    to[padded + i] = sums[1][i][thread];
  }
}

// Partial sums are added up by kLanes threads for each of kLaneChannels channels.
constexpr int kLanes = 64;
constexpr int kLaneChannels = 16;
constexpr int kLoadsAtOnce = 4;
// The channel of a thread that adds up partial sums.
__device__ inline int LaneChannel() {
  return static_cast<int>(blockIdx.x) * kLaneChannels + static_cast<int>(threadIdx.x);
}

// Adds up the partial sums of LaneChannel(): right in the threads of lane 0.
struct TwoSums {
  float first, second;
};
__device__ inline TwoSums SumOfPartials(const float* partial, int blocks, int padded) {
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

inline dim3 LaneGrid(int padded) {
  return dim3(static_cast<unsigned>((padded + kLaneChannels - 1) / kLaneChannels));
}

// Blocks on a multiprocessor at once of a pass that writes: twice the loads take more registers.
constexpr int WritersAtOnce(int depth) { return depth == 1 ? kBlocksAtOnce : 2; }

// Where the gradient of eight channels passes, as bits: all of it where there is no mask.
__device__ inline unsigned LoadMask(const std::uint8_t* mask, std::int64_t at) {
  return mask == nullptr ? 0xFFU : mask[at / 8];
}

// The sums of the gradient, and of the gradient times the normalized input.
template <typename T, int depth = 1>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    GradientSums(const T* src, const std::uint8_t* mask, const T* diff_dst, const float* means,
                 const float* inverses, int pixels, int padded, int columns, float* partial) {
  SynchronizeGridDependencies();
  constexpr int kAtOnce = depth * kPixelsAtOnce<T>;
  const Track track = TrackOf(columns, pixels);
  float sum[8] = {};
  float products[8] = {};
  if (track.channel < padded) {
    float mean[8];
    LoadChannels(means, track.channel, mean);
    Eight<T> x[kAtOnce];
    Eight<T> g[kAtOnce];
    unsigned passes[kAtOnce];
    const auto load = [&](int u, std::int64_t at) {
      x[u] = LoadEight(src + at);
      g[u] = LoadEight(diff_dst + at);
      passes[u] = LoadMask(mask, at);
    };
    const auto add = [&](int u, std::int64_t /*at*/) {
      float input[8];
      float gradient[8];
      Widen(x[u], input);
      Widen(g[u], gradient);
      for (int i = 0; i < 8; ++i) {
        const float value = (passes[u] >> i & 1U) != 0 ? gradient[i] : 0.0F;
        sum[i] += value;
        products[i] += value * (input[i] - mean[i]);
      }
    };
    Walk<kAtOnce, From::kStart>(track, pixels, padded, load, add);
    float inverse[8];
    LoadChannels(inverses, track.channel, inverse);
    for (int i = 0; i < 8; ++i) products[i] *= inverse[i];
  }
  StorePartial(sum, products, columns, padded, partial);
}

// diff_src = of_gradient * g + of_input * (x - mean) + rest
struct BackwardCoefficients {
  float* of_gradient;
  float* of_input;
  float* rest;
};

// Where they are in NormCoefficientsFloats, with which the scratch of a backward pass begins.
inline BackwardCoefficients CoefficientsIn(float* scratch, int padded) {
  return {scratch, scratch + padded, scratch + 2 * padded};
}

// In this order a single value per channel, whose gradient is 0, gives exactly that.
__device__ inline float Differentiate(float gradient, float x, float mean, float of_gradient,
                                      float of_input, float rest) {
  return of_gradient * gradient + of_input * (x - mean) + rest;
}

// Of one channel, as BackwardCoefficients has them of all.
struct Coefficients {
  float of_gradient, of_input, rest;
};

// What the sums of a gradient become.
struct GradientEnd {
  float pixels;
  int channels, padded;
  const float* scale;
  const float* inverse;
  bool of_batch;
  float* diff_scale;
  float* diff_shift;

  // `products`: of the gradient and the normalized input.
  __device__ Coefficients Of(int channel, float sum, float products) const {
    const float factor = channel < channels ? scale[channel] * inverse[channel] : 0.0F;
    const float share = of_batch ? factor / pixels : 0.0F;
    return {factor, -share * inverse[channel] * products, -share * sum};
  }
  __device__ void Keep(int channel, float sum, float products) const {
    if (channel >= channels) return;
    diff_scale[channel] = products;
    diff_shift[channel] = sum;
  }
};

inline GradientEnd EndOf(const NormShape& shape, const float* scale, const float* inverse,
                         bool of_batch, float* diff_scale, float* diff_shift) {
  return {.pixels = static_cast<float>(shape.pixels),
          .channels = shape.channels,
          .padded = shape.padded,
          .scale = scale,
          .inverse = inverse,
          .of_batch = of_batch,
          .diff_scale = diff_scale,
          .diff_shift = diff_shift};
}

// The same as BackwardCoefficients of a thread's eight channels, in registers.
struct BackwardChannels {
  float mean[8], of_gradient[8], of_input[8], rest[8];

  BackwardChannels() = default;
  __device__ BackwardChannels(const float* means, const BackwardCoefficients& by, int channel) {
    LoadChannels(means, channel, mean);
    LoadChannels(by.of_gradient, channel, of_gradient);
    LoadChannels(by.of_input, channel, of_input);
    LoadChannels(by.rest, channel, rest);
  }
  __device__ float Differentiate(int i, float gradient, float x) const {
    return batch_norm::Differentiate(gradient, x, mean[i], of_gradient[i], of_input[i], rest[i]);
  }
};

// What GradientSums has left: finishes diff_scale and diff_shift, and the coefficients for
// diff_src. `pixels` are those of src, which may be more than those that were summed.
void FinishGradientSums(const NormShape& shape, const NormPartialSums& partial, const float* scale,
                        const float* inverse, bool of_batch, float* diff_scale, float* diff_shift,
                        const BackwardCoefficients& to, CUstream_st* stream);

// The last pass of RunNormBackward.
void RunDifferentiate(const NormShape& shape, const NormBackward& call,
                      const BackwardCoefficients& by, CUstream_st* stream);

// Mean and biased variance of each channel, out of which a forward pass makes its coefficients.
struct Statistics {
  NormParameters parameters;
  const float* first;   // means, or sums of all pixels
  const float* second;  // variances, or sums of squares
  bool are_sums;
  bool of_batch;  // then the running ones move
  float pixels;   // of the batch
  int channels, padded;
  float* saved;  // gets what NormSavedFloats says; or null
};
Statistics FindStatistics(const NormShape& shape, const NormParameters& parameters,
                          const NormSource& src, bool of_batch, float* saved, float* scratch,
                          CUstream_st* stream);

// y = factor * (x - mean) + shift of a thread's eight channels.  Those of padding have zeros.
struct ForwardChannels {
  float factor[8], mean[8], shift[8];

  // The thread with the first pixel of all also keeps and moves what `of` says.
  __device__ ForwardChannels(const Statistics& of, const Track& track) {
    for (int i = 0; i < 8; ++i) Find(of, track, i);
  }
  __device__ float Normalize(int i, float x) const { return (x - mean[i]) * factor[i] + shift[i]; }

 private:
  __device__ void Find(const Statistics& of, const Track& track, int i) {
    const int channel = track.channel + i;
    const bool is_used = channel < of.channels;
    float variance = 0;
    float inverse = 0;
    mean[i] = 0;
    if (is_used) {
      mean[i] = of.first[channel];
      variance = of.second[channel];
      if (of.are_sums) {
        mean[i] /= of.pixels;
        variance = fmaxf(variance / of.pixels - mean[i] * mean[i], 0.0F);
      }
      inverse = rsqrtf(variance + of.parameters.epsilon);
    }
    factor[i] = is_used ? of.parameters.scale[channel] * inverse : 0.0F;
    shift[i] = is_used ? of.parameters.shift[channel] : 0.0F;
    if (track.first != 0) return;
    if (of.saved != nullptr) {
      of.saved[channel] = mean[i];
      of.saved[of.padded + channel] = inverse;
      of.saved[2 * of.padded + channel] = is_used ? of.parameters.scale[channel] : 0.0F;
      of.saved[3 * of.padded + channel] = shift[i];
    }
    if (is_used && of.of_batch) MoveRunning(of, channel, mean[i], variance);
  }

  static __device__ void MoveRunning(const Statistics& of, int channel, float mean,
                                     float variance) {
    const NormParameters& p = of.parameters;
    const float unbiased = variance * (of.pixels / fmaxf(of.pixels - 1, 1.0F));
    p.running_mean[channel] = p.kept * p.running_mean[channel] + (1 - p.kept) * mean;
    p.running_variance[channel] = p.kept * p.running_variance[channel] + (1 - p.kept) * unbiased;
  }
};

}  // namespace batch_norm
}  // namespace trainer
