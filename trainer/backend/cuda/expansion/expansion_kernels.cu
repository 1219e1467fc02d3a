// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "trainer/backend/cuda/expansion/expansion_kernels.h"
#include "trainer/backend/cuda/expansion/expansion_turn.cuh"

namespace trainer {
namespace expansion {
namespace {

// What a block leaves behind: its share of diff_filter, then of the products, then of the sums.
constexpr int kFilterValues = kFilters * kChannels;
constexpr int kPartialFloats = kFilterValues + 2 * kChannels;

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
__global__ void __launch_bounds__(kBlockThreads, 1)
    BackwardOfExpansion(ExpansionBackward call, int pixels) {
  using Of = Turn<cores>;
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
  TileSum diff_filter[kColumnTiles] = {};  // rows kEdge * warp and on
  for (int i = 0; i < 2 * kOwnColumns && warp < Of::kFirstShare; ++i) {
    shared.sums[i / kOwnColumns][i % kOwnColumns][thread] = 0;
  }

  // From the end: what the pass of sums has read last is still in the cache.
  const int turns = (pixels + Of::kPixels - 1) / Of::kPixels;
  int turn = turns - 1 - static_cast<int>(blockIdx.x);
  Loaded<T, cores> loaded = {};
  Load(call, turn * Of::kPixels, pixels, loaded);
  while (turn >= 0) {
    const int first = turn * Of::kPixels;
    turn -= static_cast<int>(gridDim.x);
    Apply(call, first, turn * Of::kPixels, pixels, loaded, shared);
    __syncthreads();

#pragma unroll
    for (int depth = 0; depth < Of::kPixels; depth += kEdge) {
      Operand<T, cores, Side::kA, Neighbours::kEdge> gradient;
      LoadOperand(
          [&](int line, int part) {
            return shared.wide + (depth + line) * kWideRow + warp * kEdge + part * 8;
          },
          gradient);
#pragma unroll
      for (int tile = 0; tile < kColumnTiles; ++tile) {
        Operand<T, cores, Side::kB, Neighbours::kEdge> src;
        LoadOperand(
            [&](int line, int part) {
              return shared.src + (depth + line) * kNarrowRow + tile * kEdge + part * 8;
            },
            src);
        MultiplyAdd(gradient, src, diff_filter[tile]);
      }
    }
    TileSum sum = {};
#pragma unroll
    for (int step = 0; step < Of::kSteps; ++step) {
      Operand<T, cores, Side::kA, Neighbours::kDepth> gradient;
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
  for (int tile = 0; tile < kColumnTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      partial[(warp * kEdge + TileRow<cores>(i)) * kChannels + tile * kEdge +
              TileColumn<cores>(i)] = diff_filter[tile].values[i];
    }
  }
  __shared__ float of_tiles[Of::kPixelTiles][2][kChannels];
  if (warp < Of::kFirstShare) {
#pragma unroll
    for (int value = 0; value < 8; ++value) {
      if (value % 4 >= 2) continue;  // the columns of the two values before
      const int own = OwnColumn(value);
      const float products = OverRows<cores>(shared.sums[0][own][thread]);
      const float sum = OverRows<cores>(shared.sums[1][own][thread]);
      if (TileRow<cores>(0) != 0) continue;
      of_tiles[row / kEdge][0][columns + TileColumn<cores>(value)] = products;
      of_tiles[row / kEdge][1][columns + TileColumn<cores>(value)] = sum;
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

// Adds up what the blocks have left behind, in lanes of threads.
constexpr int kFinishLanes = 8;
template <typename T>
__global__ void FinishExpansion(const float* partial, int blocks, T* diff_filter, float* sums) {
  __shared__ float of_lanes[kFinishLanes][32];
  const int lane = static_cast<int>(threadIdx.y);
  const int column = static_cast<int>(threadIdx.x);
  const int value = static_cast<int>(blockIdx.x) * 32 + column;
  float own = 0;
#pragma unroll 4
  for (int block = lane; block < blocks; block += kFinishLanes) {
    own += partial[static_cast<std::int64_t>(block) * kPartialFloats + value];
  }
  of_lanes[lane][column] = own;
  __syncthreads();
  if (lane > 0) return;
  for (int other = 1; other < kFinishLanes; ++other) own += of_lanes[other][column];
  if (value < kFilterValues) {
    Assign(diff_filter[value], own);
  } else {
    sums[value - kFilterValues] = own;
  }
}
static_assert(kPartialFloats % 32 == 0);

// Of the kernel for these tensor cores.
template <TensorCores cores>
int BlocksOf(const ExpansionShape& shape) {
  constexpr int kPixels = Turn<cores>::kPixels;
  DDL_CHECK(shape.pixels > 0 && shape.pixels < std::int64_t{1} << 30);
  return static_cast<int>(
      std::min<std::int64_t>((shape.pixels + kPixels - 1) / kPixels, shape.multiprocessors));
}

template <typename T, TensorCores cores>
void Queue(const ExpansionShape& shape, const ExpansionBackward& call, CUstream_st* stream) {
  const int blocks = BlocksOf<cores>(shape);
  Launch(BackwardOfExpansion<T, cores>, static_cast<unsigned>(blocks), kBlockThreads, stream, call,
         static_cast<int>(shape.pixels));
  Launch(FinishExpansion<T>, kPartialFloats / 32, dim3(32, kFinishLanes), stream, call.scratch,
         blocks, static_cast<T*>(call.diff_filter), call.sums);
}

}  // namespace
}  // namespace expansion

bool HasExpansionKernel(const ExpansionShape& shape) {
  if (shape.dtype == DType::kFloat16) return shape.compute_capability >= 7;
  return shape.dtype == DType::kBFloat16 && shape.compute_capability >= 8;
}

std::int64_t ExpansionScratchFloats(const ExpansionShape& shape) {
  return std::int64_t{shape.multiprocessors} * expansion::kPartialFloats;
}

void RunExpansionBackward(const ExpansionShape& shape, const ExpansionBackward& call,
                          CUstream_st* stream) {
  DDL_CHECK(HasExpansionKernel(shape));
  if (shape.dtype == DType::kBFloat16) {
    expansion::Queue<__nv_bfloat16, TensorCores::kWholeWarp>(shape, call, stream);
  } else if (TensorCoresOf(shape.compute_capability) == TensorCores::kWholeWarp) {
    expansion::Queue<__half, TensorCores::kWholeWarp>(shape, call, stream);
  } else {
    expansion::Queue<__half, TensorCores::kQuadPairs>(shape, call, stream);
  }
}

}  // namespace trainer
