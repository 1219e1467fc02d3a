// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/norms/batch_norm_passes.cuh"
#include "trainer/backend/cuda/stem/stem_filters.cuh"
#include "trainer/backend/cuda/stem/stem_passes.h"
#include "trainer/backend/cuda/stem/stem_tiles.cuh"
#include "trainer/backend/cuda/stem/stem_windows.cuh"

namespace trainer {
namespace stem {
namespace {

using batch_norm::BackwardCoefficients;

// Eight warps, and tiles of eight rows.
constexpr int kBackwardThreads = 256;
// What quad pairs multiply takes more registers.
constexpr int BackwardAtOnce(TensorCores cores) { return cores == TensorCores::kWholeWarp ? 2 : 1; }
constexpr int kRows = 8;
constexpr int kQuadRows = kRows / 2;
constexpr int kQuadColumns = kTileColumns / 2;
static_assert(kQuadRows * kQuadColumns * (kChannels / 8) == kBackwardThreads);

template <typename T>
struct BackwardMemory {
  static constexpr int kPixelElements = kChannels + 8;  // odd numbers of 16 bytes
  static constexpr int kLineElements = kFilterLine + 8;
  float mean[kChannels], of_gradient[kChannels], of_input[kChannels], rest[kChannels];
  // Of the ReLU's result, then of the convolution's.
  alignas(16) T gradient[kRows * kTileColumns * kPixelElements];
  alignas(16) T lines[kChannels * kLineElements];
  alignas(16) T patch[Patch<T, kRows>::kElements];
};

template <typename T>
__device__ inline void LoadOnce(const T* lines, const float* means, const BackwardCoefficients& by,
                                BackwardMemory<T>& memory) {
  constexpr int kParts = kFilterLine / 8;
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kChannels * kParts; i += kBackwardThreads) {
    StoreEight(LoadEight(lines + i * 8),
               memory.lines + i / kParts * BackwardMemory<T>::kLineElements + i % kParts * 8);
  }
  if (thread >= kChannels) return;
  memory.mean[thread] = means[thread];
  memory.of_gradient[thread] = by.of_gradient[thread];
  memory.of_input[thread] = by.of_input[thread];
  memory.rest[thread] = by.rest[thread];
}

// From the pool's windows to its pixels.  A thread has a quad and eight channels.
template <typename T>
__device__ inline void Unpool(const T* diff_dst, const std::uint8_t* winners,
                              const TilePlace& place, const Extents& e, BackwardMemory<T>& memory) {
  const int channel = static_cast<int>(threadIdx.x) % (kChannels / 8) * 8;
  const int quad = static_cast<int>(threadIdx.x) / (kChannels / 8);
  const int row = quad / kQuadColumns;
  const int column = quad % kQuadColumns;
  ChoicesOfQuad<T> choices;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    choices.Load(i, diff_dst, winners, {place.n, place.top / 2 + row, place.left / 2 + column}, e,
                 kChannels, channel);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float gradient[8] = {};
    choices.AddOfPixel(i, gradient);
    const int pixel = (2 * row + i / 2) * kTileColumns + 2 * column + i % 2;
    Store8(gradient, memory.gradient + pixel * BackwardMemory<T>::kPixelElements + channel);
  }
}

// The convolution of two rows and two tiles of channels, and instead of the gradient there that of
// its result; none outside of the image.
template <typename T, TensorCores cores>
__device__ __forceinline__ void Differentiate(const Patch<T, kRows>& patch, const TilePlace& place,
                                              const Plane& plane, BackwardMemory<T>& memory) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int first_row = warp / 2 * 2;
  const int first_channel = warp % 2 * 32;
  TileSum x[2][2] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    Pixels<T, cores> pixels[2];
    Filters<T, cores> filters[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      LoadPixels(patch, first_row + i, step, pixels[i]);
      LoadOperand(
          [&](int line, int part) {
            return memory.lines +
                   (first_channel + i * 16 + line) * BackwardMemory<T>::kLineElements + step * 16 +
                   part * 8;
          },
          filters[i]);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) MultiplyAdd(pixels[i / 2], filters[i % 2], x[i / 2][i % 2]);
  }
#pragma unroll
  for (int tile = 0; tile < 2; ++tile) {
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
      const int channel = first_channel + tile * 16 + TileColumn<cores>(i);
      const int column = TileRow<cores>(i);
      const auto two = [&](const float* of) { return make_float2(of[channel], of[channel + 1]); };
      const float2 mean = two(memory.mean);
      const float2 of_gradient = two(memory.of_gradient);
      const float2 of_input = two(memory.of_input);
      const float2 rest = two(memory.rest);
#pragma unroll
      for (int of = 0; of < 2; ++of) {
        const int row = first_row + of;
        const bool is_there = place.top + row < plane.height && place.left + column < plane.width;
        auto* word = reinterpret_cast<unsigned*>(
            memory.gradient + (row * kTileColumns + column) * BackwardMemory<T>::kPixelElements +
            channel);
        const float2 gradient = ToFloats(*word, T{});
        const float* values = x[of][tile].values + i;
        const float first = of_gradient.x * gradient.x + of_input.x * (values[0] - mean.x) + rest.x;
        const float second =
            of_gradient.y * gradient.y + of_input.y * (values[1] - mean.y) + rest.y;
        *word = is_there ? ToWord(first, second, T{}) : 0U;
      }
    }
  }
}

// A warp has two tiles of channels and one row of the filter's blocks.
template <typename T, TensorCores cores>
struct WarpGradient {
  TileSum sums[2][kStepsOfRow] = {};

  __device__ static int channel() { return static_cast<int>(threadIdx.x) / 32 % 2 * 32; }
  __device__ static int filter_row() { return static_cast<int>(threadIdx.x) / 64; }

  __device__ __forceinline__ void Add(const Patch<T, kRows>& patch,
                                      const BackwardMemory<T>& memory) {
#pragma unroll 2
    for (int row = 0; row < kRows; ++row) {
      Operand<T, cores, Side::kA, Major::kMN> gradient[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        LoadOperand(
            [&](int line, int part) {
              return memory.gradient +
                     (row * kTileColumns + line) * BackwardMemory<T>::kPixelElements + channel() +
                     i * 16 + part * 8;
            },
            gradient[i]);
      }
#pragma unroll
      for (int step = 0; step < kStepsOfRow; ++step) {
        Operand<T, cores, Side::kB, Major::kMN> pixels;
        LoadOperand(
            [&](int line, int part) {
              return patch.Line(row + filter_row(), line) + step * 16 + part * 8;
            },
            pixels);
#pragma unroll
        for (int i = 0; i < 2; ++i) MultiplyAdd(gradient[i], pixels, sums[i][step]);
      }
    }
  }

  __device__ void Store(float* partial) const {
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
#pragma unroll
      for (int step = 0; step < kStepsOfRow; ++step) {
#pragma unroll
        for (int i = 0; i < 8; i += 2) {
          float* to = partial + (channel() + tile * 16 + TileRow<cores>(i)) * kFilterLine +
                      (filter_row() * kStepsOfRow + step) * 16 + TileColumn<cores>(i);
          *reinterpret_cast<float2*>(to) =
              make_float2(sums[tile][step].values[i], sums[tile][step].values[i + 1]);
        }
      }
    }
  }
};

template <typename T, TensorCores cores>
__global__ void __launch_bounds__(kBackwardThreads, BackwardAtOnce(cores))
    DifferentiateFilter(const T* blocks, const T* lines, Plane plane, int tiles, Extents e,
                        const T* diff_dst, const std::uint8_t* winners, const float* means,
                        BackwardCoefficients by, float* partial) {
  SynchronizeGridDependencies();
  BackwardMemory<T>& memory = *reinterpret_cast<BackwardMemory<T>*>(GivenShared());
  const Patch<T, kRows> patch = {memory.patch};
  LoadOnce(lines, means, by, memory);
  WarpGradient<T, cores> gradient;
  for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
    const TilePlace place = PlaceOf(tile, plane);
    __syncthreads();  // the tile before may still be read
    patch.template Load<kBackwardThreads>(blocks, place, plane);
    Unpool(diff_dst, winners, place, e, memory);
    __syncthreads();
    Differentiate<T, cores>(patch, place, plane, memory);
    __syncthreads();
    gradient.Add(patch, memory);
  }
  gradient.Store(partial + std::int64_t{blockIdx.x} * kChannels * kFilterLine);
}

// Adds up what the blocks have of each element of the filter over pixels, some of them in each of
// kParts threads.
constexpr int kSumParts = 8;
constexpr int kSumElements = kThreads / kSumParts;
template <typename T>
__global__ void SumFilterGradients(const float* partial, int blocks, int elements, T* diff_filter) {
  SynchronizeGridDependencies();
  __shared__ float sums[kSumParts][kSumElements];
  const int column = static_cast<int>(threadIdx.x) % kSumElements;
  const int part = static_cast<int>(threadIdx.x) / kSumElements;
  const int i = static_cast<int>(blockIdx.x) * kSumElements + column;
  const int at = i < elements ? PlaceInBlocks<kBlockChannels>(i % kPixelFilter) : -1;
  float sum = 0;
  if (at >= 0) {
    const float* from = partial + i / kPixelFilter * kFilterLine + at;
#pragma unroll 4
    for (int block = part; block < blocks; block += kSumParts) {
      sum += from[std::int64_t{block} * kChannels * kFilterLine];
    }
  }
  sums[part][column] = sum;
  __syncthreads();
  if (part != 0 || i >= elements) return;
  for (int other = 1; other < kSumParts; ++other) sum += sums[other][column];
  Assign(diff_filter[i], sum);
}

Plane BackwardPlane(const StemImages& images) { return PlaneOf(images, kRows, kTileColumns, 0); }

}  // namespace

std::int64_t BackwardScratchFloats(const StemSize& size) {
  return std::int64_t{BlocksOver(BackwardPlane(size.images), size, BackwardAtOnce(size.cores))} *
         kChannels * kFilterLine;
}

}  // namespace stem

void RunConvolvedBackward(const StemSize& size, const StemOperands& operands, const float* scale,
                          const PooledNormBackward& call, void* diff_filter, CUstream_st* stream) {
  RunPooledNormSums(size.norm, size.images, scale, call, stream);
  const stem::Plane plane = stem::BackwardPlane(size.images);
  const int grid = stem::BlocksOver(plane, size, stem::BackwardAtOnce(size.cores));
  float* scratch = call.norm.scratch;
  float* partial = scratch + NormScratchFloats(size.norm);
  stem::WithTensorCores(size, [&](auto zero, auto cores) {
    using T = decltype(zero);
    LaunchWithShared(sizeof(stem::BackwardMemory<T>), stem::DifferentiateFilter<T, cores>,
                     static_cast<unsigned>(grid), stem::kBackwardThreads, stream,
                     static_cast<const T*>(operands.blocks), static_cast<const T*>(operands.lines),
                     plane, plane.tiles(), ExtentsOf(size.images),
                     static_cast<const T*>(call.diff_dst), call.winners, call.norm.saved,
                     batch_norm::CoefficientsIn(scratch, stem::kChannels), partial);
    constexpr int kElements = stem::kChannels * kPixelFilter;
    constexpr int kGrid = (kElements + stem::kSumElements - 1) / stem::kSumElements;
    Launch(stem::SumFilterGradients<T>, static_cast<unsigned>(kGrid), kThreads, stream, partial,
           grid, kElements, static_cast<T*>(diff_filter));
  });
}

}  // namespace trainer
