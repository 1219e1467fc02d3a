// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "trainer/backend/cuda/bottleneck/conv3_backward.h"
#include "trainer/backend/cuda/bottleneck/conv3_backward_tile.cuh"
#include "trainer/backend/cuda/bottleneck/partial_filters.cuh"

namespace trainer {
namespace conv3_backward {
namespace {

// What a block leaves behind: its share of diff_filter, then of the products, then of the sums.
constexpr int kFilterValues = kFilters * kChannels;
constexpr int kPartialFloats = kFilterValues + 2 * kChannels;
static_assert(kPartialFloats % partial_filters::kColumns == 0);

// Steps of the product for diff_filter: but on Hopper ptxas has no registers for two.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 900
constexpr int kDepthsAtOnce = 1;
#else
constexpr int kDepthsAtOnce = 2;
#endif

// Over the lanes that have the same columns.
template <TensorCores cores>
__device__ inline float OverRows(float value) {
  constexpr int kFirst = cores == TensorCores::kWholeWarp ? 4 : 1;
  constexpr int kSecond = cores == TensorCores::kWholeWarp ? 8 : 4;
  value += __shfl_xor_sync(0xFFFFFFFFU, value, kFirst);
  value += __shfl_xor_sync(0xFFFFFFFFU, value, kSecond);
  return value + __shfl_xor_sync(0xFFFFFFFFU, value, 16);
}

template <typename T, TensorCores cores>
__global__ void __launch_bounds__(kBlockThreads, 1) BackwardKernel(Conv3Backward call, int pixels) {
  SynchronizeGridDependencies();
  using Of = BlockTile<cores>;
  __shared__ Shared<T, cores> shared;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  // Of the data gradient: the tile, and the filters over which the warp adds it up.
  const int columns = warp % kColumnTiles * kEdge;
  const int row = warp / kColumnTiles % Of::kPixelTiles * kEdge;
  const int first_filter = warp / Of::kFirstShare * Of::kDepth;

  LoadCoefficients(call, shared);
  FilterOperand<T, cores> filter[Of::kSteps];
  LoadFilter(static_cast<const T*>(call.filter), first_filter, shared, filter);
  // Of the filter's gradient: two by two tiles.
  const int own_filters = warp / 2 * 2 * kEdge;
  const int own_channels = warp % 2 * 2 * kEdge;
  TileSum diff_filter[2][2] = {};
  for (int i = 0; i < 2 * kColumnPairs && warp < Of::kFirstShare; ++i) {
    shared.sums[i / kColumnPairs][i % kColumnPairs][thread] = make_float2(0, 0);
  }

  // From the end: what the pass of sums has read last is still in the cache.
  const int block_tiles = (pixels + Of::kPixels - 1) / Of::kPixels;
  int block_tile = block_tiles - 1 - static_cast<int>(blockIdx.x);
  Loaded<T, cores> loaded = {};
  Load(call, block_tile * Of::kPixels, pixels, loaded);
  while (block_tile >= 0) {
    const int first = block_tile * Of::kPixels;
    block_tile -= static_cast<int>(gridDim.x);
    Apply(call, first, block_tile * Of::kPixels, pixels, loaded, shared);
    __syncthreads();

#pragma unroll kDepthsAtOnce
    for (int depth = 0; depth < Of::kPixels; depth += kEdge) {
      Operand<T, cores, Side::kA, Major::kMN> gradient[2];
#pragma unroll
      for (int of = 0; of < 2; ++of) {
        LoadOperand(
            [&](int line, int part) {
              return shared.wide + (depth + line) * kWideRow + own_filters + of * kEdge + part * 8;
            },
            gradient[of]);
      }
#pragma unroll
      for (int tile = 0; tile < 2; ++tile) {
        Operand<T, cores, Side::kB, Major::kMN> src;
        LoadOperand(
            [&](int line, int part) {
              return shared.src + (depth + line) * kNarrowRow + own_channels + tile * kEdge +
                     part * 8;
            },
            src);
#pragma unroll
        for (int of = 0; of < 2; ++of) MultiplyAdd(gradient[of], src, diff_filter[of][tile]);
      }
    }
    TileSum sum = {};
#pragma unroll
    for (int step = 0; step < Of::kSteps; ++step) {
      Operand<T, cores, Side::kA, Major::kK> gradient;
      LoadOperand(
          [&](int line, int part) {
            return shared.wide + (row + line) * kWideRow + first_filter + step * kEdge + part * 8;
          },
          gradient);
      MultiplyAdd(gradient, filter[step], sum);
    }

    unsigned before[4] = {};
    if (warp >= Of::kFirstShare) {
      for (int i = 0; i < 8; ++i) shared.shares[warp - Of::kFirstShare][i][lane] = sum.values[i];
    } else {
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        before[pair] = *reinterpret_cast<const unsigned*>(
            shared.before + (row + TileRow<cores>(2 * pair)) * kNarrowRow + columns +
            TileColumn<cores>(2 * pair));
      }
    }
    __syncthreads();
    if (warp >= Of::kFirstShare) continue;
#pragma unroll
    for (int other = warp; other < kWarps - Of::kFirstShare; other += Of::kFirstShare) {
      for (int i = 0; i < 8; ++i) sum.values[i] += shared.shares[other][i][lane];
    }
    Finish(call, first + row, pixels, columns, before, sum, shared);
  }

  float* partial = call.scratch + static_cast<std::int64_t>(blockIdx.x) * kPartialFloats;
#pragma unroll
  for (int tile = 0; tile < 4; ++tile) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = own_filters + tile / 2 * kEdge + TileRow<cores>(i);
      const int column = own_channels + tile % 2 * kEdge + TileColumn<cores>(i);
      partial[row * kChannels + column] = diff_filter[tile / 2][tile % 2].values[i];
    }
  }
  __shared__ float of_tiles[Of::kPixelTiles][2][kChannels];
  if (warp < Of::kFirstShare) {
#pragma unroll
    for (int pair = 0; pair < kColumnPairs; ++pair) {
#pragma unroll
      for (int kind = 0; kind < 2; ++kind) {
        const float2 own = shared.sums[kind][pair][thread];
        const float left = OverRows<cores>(own.x);
        const float right = OverRows<cores>(own.y);
        if (TileRow<cores>(0) != 0) continue;
        float* to = of_tiles[row / kEdge][kind] + columns + TileColumn<cores>(4 * pair);
        to[0] = left;
        to[1] = right;
      }
    }
  }
  __syncthreads();
  if (thread >= 2 * kChannels) return;
  float all = 0;
  for (int tile = 0; tile < Of::kPixelTiles; ++tile) {
    all += of_tiles[tile][thread / kChannels][thread % kChannels];
  }
  partial[kFilterValues + thread] = all;
}

// Of the kernel for these tensor cores.
template <TensorCores cores>
int BlocksOf(const Conv3BackwardShape& shape) {
  constexpr int kPixels = BlockTile<cores>::kPixels;
  DDL_CHECK(shape.pixels > 0 && shape.pixels < std::int64_t{1} << 30);
  return static_cast<int>(
      std::min<std::int64_t>((shape.pixels + kPixels - 1) / kPixels, shape.sms));
}

template <typename T, TensorCores cores>
void Queue(const Conv3BackwardShape& shape, const Conv3Backward& call, CUstream_st* stream) {
  const int blocks = BlocksOf<cores>(shape);
  Launch(BackwardKernel<T, cores>, static_cast<unsigned>(blocks), kBlockThreads, stream, call,
         static_cast<int>(shape.pixels));
  partial_filters::QueueAddUp<T>(call.scratch, blocks, kPartialFloats, kFilterValues,
                                 call.diff_filter, call.sums, stream);
}

}  // namespace
}  // namespace conv3_backward

bool HasConv3Backward(const Conv3BackwardShape& shape) {
  if (shape.dtype == DType::kFloat16) return shape.compute_capability >= 7;
  return shape.dtype == DType::kBFloat16 && shape.compute_capability >= 8;
}

std::int64_t Conv3BackwardScratchFloats(const Conv3BackwardShape& shape) {
  return std::int64_t{shape.sms} * conv3_backward::kPartialFloats;
}

void RunConv3Backward(const Conv3BackwardShape& shape, const Conv3Backward& call,
                      CUstream_st* stream) {
  DDL_CHECK(HasConv3Backward(shape));
  if (shape.dtype == DType::kBFloat16) {
    conv3_backward::Queue<__nv_bfloat16, TensorCores::kWholeWarp>(shape, call, stream);
  } else if (TensorCoresOf(shape.compute_capability) == TensorCores::kWholeWarp) {
    conv3_backward::Queue<__half, TensorCores::kWholeWarp>(shape, call, stream);
  } else {
    conv3_backward::Queue<__half, TensorCores::kQuadPairs>(shape, call, stream);
  }
}

}  // namespace trainer
