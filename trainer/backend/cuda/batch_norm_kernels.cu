// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "trainer/backend/cuda/batch_norm_kernels.h"
#include "trainer/backend/cuda/element.cuh"

namespace trainer {
namespace {

// Sums over the pixels in two steps: each block adds up a slab of pixels for up to 256 channels,
// then one thread per channel and slab lane adds up the slabs.
constexpr int kMaxColumns = 32;  // of 8 channels, in a block
constexpr int kTargetBlocks = 1024;
constexpr int kSlabLanes = 8;
constexpr int kLaneChannels = 32;

struct Slabs {
  int columns = 0;  // threads across, each with 8 channels
  int groups = 0;   // blocks across
  int slabs = 0;    // blocks down
};

Slabs SlabsOf(const NormShape& shape) {
  Slabs slabs;
  const int eights = shape.padded / 8;
  slabs.columns = 1;
  while (slabs.columns < eights && slabs.columns < kMaxColumns) slabs.columns *= 2;
  slabs.groups = (eights + slabs.columns - 1) / slabs.columns;
  const std::int64_t rows = kThreads / slabs.columns;
  const std::int64_t most = (shape.pixels + rows - 1) / rows;
  slabs.slabs = static_cast<int>(
      std::clamp<std::int64_t>(kTargetBlocks / slabs.groups, 1, std::max<std::int64_t>(most, 1)));
  return slabs;
}

// Two sums of each of 8 channels, added over the rows of the block; the first row stores them.
__device__ void StoreSlab(const float (&first)[8], const float (&second)[8], int columns,
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
  const int eight = static_cast<int>(blockIdx.x) * columns + thread;
  if (thread >= columns || eight * 8 >= padded) return;
  float* to = partial + static_cast<std::int64_t>(blockIdx.y) * 2 * padded + eight * 8;
  for (int i = 0; i < 8; ++i) {
    to[i] = sums[0][i][thread];
    to[padded + i] = sums[1][i][thread];
  }
}

// The sums of x - x0 and its square, where x0 is the channel's first value: squares of large
// numbers would lose what tells them apart.
template <typename T>
__global__ void BatchSums(const T* src, std::int64_t pixels, int padded, int columns,
                          float* partial) {
  const int eight =
      static_cast<int>(blockIdx.x) * columns + static_cast<int>(threadIdx.x) % columns;
  float sum[8] = {};
  float squares[8] = {};
  if (eight * 8 < padded) {
    float origin[8];
    Load8(src + eight * 8, origin);
    const std::int64_t rows = kThreads / columns;
    const std::int64_t first = blockIdx.y * rows + threadIdx.x / columns;
    for (std::int64_t pixel = first; pixel < pixels; pixel += gridDim.y * rows) {
      float x[8];
      Load8(src + pixel * padded + eight * 8, x);
      for (int i = 0; i < 8; ++i) {
        const float moved = x[i] - origin[i];
        sum[i] += moved;
        squares[i] += moved * moved;
      }
    }
  }
  StoreSlab(sum, squares, columns, padded, partial);
}

// Adds up the slabs of one channel: in thread (lane 0, channel) of the block.
struct TwoSums {
  float first, second;
};
__device__ TwoSums SumOfSlabs(const float* partial, int slabs, int padded, int channel) {
  __shared__ float sums[2][kSlabLanes][kLaneChannels];
  const int lane = static_cast<int>(threadIdx.y);
  const int column = static_cast<int>(threadIdx.x);
  TwoSums own = {0, 0};
  for (int slab = lane; channel < padded && slab < slabs; slab += kSlabLanes) {
    const float* from = partial + static_cast<std::int64_t>(slab) * 2 * padded + channel;
    own.first += from[0];
    own.second += from[padded];
  }
  sums[0][lane][column] = own.first;
  sums[1][lane][column] = own.second;
  __syncthreads();
  TwoSums all = {0, 0};
  for (int other = 0; other < kSlabLanes; ++other) {
    all.first += sums[0][other][column];
    all.second += sums[1][other][column];
  }
  return all;
}

__device__ int LaneChannel() {
  return static_cast<int>(blockIdx.x) * kLaneChannels + static_cast<int>(threadIdx.x);
}

// y = a * x + b of each channel, and what backward needs.  Padded channels have a = b = 0.
struct Coefficients {
  float* a;
  float* b;
  float* mean;
  float* inverse;
};

__device__ void StoreCoefficients(const NormParameters& parameters, int channel, bool is_used,
                                  float mean, float variance, const Coefficients& to) {
  const float inverse = is_used ? rsqrtf(variance + parameters.epsilon) : 0.0F;
  const float a = is_used ? parameters.scale[channel] * inverse : 0.0F;
  to.a[channel] = a;
  to.b[channel] = is_used ? parameters.shift[channel] - mean * a : 0.0F;
  if (to.mean == nullptr) return;
  to.mean[channel] = is_used ? mean : 0.0F;
  to.inverse[channel] = inverse;
}

template <typename T>
__global__ void FinishBatch(const T* src, const float* partial, int slabs, std::int64_t pixels,
                            int channels, int padded, NormParameters parameters, Coefficients to) {
  const int channel = LaneChannel();
  const TwoSums sums = SumOfSlabs(partial, slabs, padded, channel);
  if (threadIdx.y != 0 || channel >= padded) return;
  const bool is_used = channel < channels;
  const float count = static_cast<float>(pixels);
  const float moved = sums.first / count;
  const float mean = ToFloat(src[channel]) + moved;
  const float variance = fmaxf(sums.second / count - moved * moved, 0.0F);
  StoreCoefficients(parameters, channel, is_used, mean, variance, to);
  if (!is_used) return;
  const float unbiased = variance * (count / fmaxf(count - 1, 1.0F));
  const float kept = parameters.kept;
  parameters.running_mean[channel] = kept * parameters.running_mean[channel] + (1 - kept) * mean;
  parameters.running_variance[channel] =
      kept * parameters.running_variance[channel] + (1 - kept) * unbiased;
}

__global__ void UseRunning(int channels, int padded, NormParameters parameters, Coefficients to) {
  const int channel = static_cast<int>(Item());
  if (channel >= padded) return;
  const bool is_used = channel < channels;
  StoreCoefficients(parameters, channel, is_used, is_used ? parameters.running_mean[channel] : 0.0F,
                    is_used ? parameters.running_variance[channel] : 0.0F, to);
}

template <typename T>
__global__ void Normalize(const T* src, const T* residual, const float* a, const float* b,
                          bool relu, std::int64_t eights, int padded, T* dst) {
  const std::int64_t eight = Item();
  if (eight >= eights) return;
  const int channel = static_cast<int>(eight * 8 % padded);
  float x[8];
  float more[8] = {};
  Load8(src + eight * 8, x);
  if (residual != nullptr) Load8(residual + eight * 8, more);
  for (int i = 0; i < 8; ++i) {
    const float y = a[channel + i] * x[i] + b[channel + i] + more[i];
    x[i] = relu && y < 0 ? 0.0F : y;  // what is not a number stays it
  }
  Store8(x, dst + eight * 8);
}

// The gradient behind the ReLU.
template <typename T>
__device__ void LoadGradient(const T* diff_dst, const T* dst, std::int64_t at, float (&g)[8]) {
  Load8(diff_dst + at, g);
  if (dst == nullptr) return;
  float y[8];
  Load8(dst + at, y);
  for (int i = 0; i < 8; ++i) g[i] = y[i] > 0 ? g[i] : 0.0F;
}

// The sums of the gradient, and of the gradient times the normalized input.
template <typename T>
__global__ void GradientSums(const T* src, const T* dst, const T* diff_dst, const float* mean,
                             const float* inverse, std::int64_t pixels, int padded, int columns,
                             float* partial) {
  const int eight =
      static_cast<int>(blockIdx.x) * columns + static_cast<int>(threadIdx.x) % columns;
  float sum[8] = {};
  float products[8] = {};
  if (eight * 8 < padded) {
    const std::int64_t rows = kThreads / columns;
    const std::int64_t first = blockIdx.y * rows + threadIdx.x / columns;
    for (std::int64_t pixel = first; pixel < pixels; pixel += gridDim.y * rows) {
      const std::int64_t at = pixel * padded + eight * 8;
      float x[8];
      float g[8];
      Load8(src + at, x);
      LoadGradient(diff_dst, dst, at, g);
      for (int i = 0; i < 8; ++i) {
        const int channel = eight * 8 + i;
        sum[i] += g[i];
        products[i] += g[i] * (x[i] - mean[channel]) * inverse[channel];
      }
    }
  }
  StoreSlab(sum, products, columns, padded, partial);
}

// diff_src = of_gradient * g + of_input * (x - mean) + rest
struct BackwardCoefficients {
  float* of_gradient;
  float* of_input;
  float* rest;
};

__global__ void FinishGradient(const float* partial, int slabs, std::int64_t pixels, int channels,
                               int padded, const float* scale, const float* inverse, bool of_batch,
                               float* diff_scale, float* diff_shift, BackwardCoefficients to) {
  const int channel = LaneChannel();
  const TwoSums sums = SumOfSlabs(partial, slabs, padded, channel);
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

template <typename T>
__global__ void Differentiate(const T* src, const T* dst, const T* diff_dst, const float* mean,
                              BackwardCoefficients by, std::int64_t eights, int padded, T* diff_src,
                              T* diff_residual) {
  const std::int64_t eight = Item();
  if (eight >= eights) return;
  const int channel = static_cast<int>(eight * 8 % padded);
  float x[8];
  float g[8];
  Load8(src + eight * 8, x);
  LoadGradient(diff_dst, dst, eight * 8, g);
  if (diff_residual != nullptr) Store8(g, diff_residual + eight * 8);
  for (int i = 0; i < 8; ++i) {
    const int c = channel + i;
    x[i] = by.of_gradient[c] * g[i] + by.of_input[c] * (x[i] - mean[c]) + by.rest[c];
  }
  Store8(x, diff_src + eight * 8);
}

dim3 SlabGrid(const Slabs& slabs) {
  return dim3(static_cast<unsigned>(slabs.groups), static_cast<unsigned>(slabs.slabs));
}
dim3 LaneGrid(int padded) {
  return dim3(static_cast<unsigned>((padded + kLaneChannels - 1) / kLaneChannels));
}

}  // namespace

std::int64_t NormScratchFloats(const NormShape& shape) {
  return (std::int64_t{2} * SlabsOf(shape).slabs + 3) * shape.padded;
}

std::int64_t NormSavedFloats(const NormShape& shape) { return std::int64_t{2} * shape.padded; }

void RunNormForward(const NormShape& shape, const NormParameters& parameters,
                    const NormForward& call, CUstream_st* stream) {
  const Slabs slabs = SlabsOf(shape);
  const int padded = shape.padded;
  float* partial = call.scratch + 3 * padded;
  const Coefficients coefficients = {call.scratch, call.scratch + padded, call.saved,
                                     call.saved == nullptr ? nullptr : call.saved + padded};
  const std::int64_t eights = shape.pixels * (padded / 8);
  WithElement(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* src = static_cast<const T*>(call.src);
    if (call.of_batch) {
      Launch(BatchSums<T>, SlabGrid(slabs), kThreads, stream, src, shape.pixels, padded,
             slabs.columns, partial);
      Launch(FinishBatch<T>, LaneGrid(padded), dim3(kLaneChannels, kSlabLanes), stream, src,
             partial, slabs.slabs, shape.pixels, shape.channels, padded, parameters, coefficients);
    } else {
      Launch(UseRunning, BlocksFor(padded), kThreads, stream, shape.channels, padded, parameters,
             coefficients);
    }
    Launch(Normalize<T>, BlocksFor(eights), kThreads, stream, src,
           static_cast<const T*>(call.residual), coefficients.a, coefficients.b, call.relu, eights,
           padded, static_cast<T*>(call.dst));
  });
}

void RunNormBackward(const NormShape& shape, const float* scale, const NormBackward& call,
                     CUstream_st* stream) {
  const Slabs slabs = SlabsOf(shape);
  const int padded = shape.padded;
  const float* mean = call.saved;
  const float* inverse = call.saved + padded;
  float* partial = call.scratch + 3 * padded;
  const BackwardCoefficients coefficients = {call.scratch, call.scratch + padded,
                                             call.scratch + 2 * padded};
  const std::int64_t eights = shape.pixels * (padded / 8);
  WithElement(shape.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* src = static_cast<const T*>(call.src);
    const auto* dst = static_cast<const T*>(call.dst);
    const auto* diff_dst = static_cast<const T*>(call.diff_dst);
    Launch(GradientSums<T>, SlabGrid(slabs), kThreads, stream, src, dst, diff_dst, mean, inverse,
           shape.pixels, padded, slabs.columns, partial);
    Launch(FinishGradient, LaneGrid(padded), dim3(kLaneChannels, kSlabLanes), stream, partial,
           slabs.slabs, shape.pixels, shape.channels, padded, scale, inverse, call.of_batch,
           call.diff_scale, call.diff_shift, coefficients);
    Launch(Differentiate<T>, BlocksFor(eights), kThreads, stream, src, dst, diff_dst, mean,
           coefficients, eights, padded, static_cast<T*>(call.diff_src),
           static_cast<T*>(call.diff_residual));
  });
}

}  // namespace trainer
