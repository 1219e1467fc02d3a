// SPDX-License-Identifier: Apache-2.0
//
// The product of rows_product.cuh, of which Front and End are, where the filter is more than a
// multiprocessor has: sums stay in registers while source and filter come in chunks of the depth.
//
// A thread block stays and goes over tiles of 128 pixels, gridDim.y apart, with 256 columns of the
// filter; blockIdx.x says which.  Each chunk of the source is made by what is in front, and each of
// the filter is read from the L2 cache, for each tile once more, while the chunk before is
// multiplied; shared memory has two of each.  Warps are four down and four across: each has 32
// pixels and 64 columns.
//
// Clocks of a chunk of 128 pixels and 64 of the depth on an H200, where a multiprocessor has 18
// bytes of memory a clock and, all in all, some 24 of the L2 cache:
//                             memory           L2               shared memory   mma.sync
//   1,024 to 256              3,000 (53 KB)    3,600 (85 KB)    about 2,400     1,600
//   512 to 256                3,250 (57 KB)    3,800 (89 KB)    about 2,500     1,600
//   conv3_data_gradient,
//     1,024 to 256            3,200 (56 KB)    3,800 (88 KB)    about 2,500     1,600
//   conv1_backward,
//     512 to 1,024 or 2,048   1,600 (28 KB)    3,100 (73 KB)    about 2,500     1,600

#pragma once

#include "trainer/backend/cuda/bottleneck/rows_product.cuh"
#include "trainer/backend/cuda/runtime/async_copy.cuh"

namespace trainer {
namespace streamed_product {

using rows_product::kBlockThreads;
using rows_product::kEdge;
using rows_product::Product;
using rows_product::Thread;

template <typename Of>
struct Shared;

// For a depth of at most that; tensor cores of 8.0 on.  The filter as rows_product::Tile has it.
template <typename Element, int depth, Major filter_major>
struct Tile {
  using T = Element;
  using Shared = streamed_product::Shared<Tile>;
  static constexpr TensorCores kCores = TensorCores::kWholeWarp;
  static constexpr Major kFilterMajor = filter_major;
  static constexpr bool kKeepsSums = true;  // in registers
  static constexpr int kPixels = 128;
  static constexpr int kColumns = 256;
  static constexpr int kDepth = depth;
  static constexpr int kChunk = 64;  // of the depth
  static constexpr int kShares = 1;
  // Of a warp.
  static constexpr int kWarpsAcross = 4;
  static constexpr int kWarpPixels = 32;
  static constexpr int kWarpColumns = kColumns / kWarpsAcross;
  static_assert(rows_product::kWarps * kWarpPixels * kWarpColumns == kPixels * kColumns);
  static constexpr int kRowTiles = kWarpPixels / kEdge;
  static constexpr int kColumnTiles = kWarpColumns / kEdge;
  // As rows_product::Tile has them, in front for a chunk, behind for the pixels of a warp.
  static constexpr int kSourceThreads = kChunk / 8;
  static constexpr int kSourceRowsAtOnce = kBlockThreads / kSourceThreads;
  static constexpr int kSourceRows = kPixels / kSourceRowsAtOnce;
  static constexpr int kThreadsAcross = kColumns / 8;
  static constexpr int kRowsAtOnce = kBlockThreads / kThreadsAcross;
  static constexpr int kRows = kWarpPixels / kRowsAtOnce;
  static constexpr int kSourceStride = kChunk + 8;
  static constexpr int kSumsStride = kColumns + 8;
  // A chunk of the filter in shared memory, in lines as in memory.
  static constexpr bool kAlongDepth = filter_major == Major::kK;
  static constexpr int kFilterLines = kAlongDepth ? kColumns : kChunk;
  static constexpr int kFilterLine = kAlongDepth ? kChunk : kColumns;
  static constexpr int kFilterStride = kFilterLine + 8;
};

template <typename Of>
struct Shared {
  union {
    alignas(16) typename Of::T source[2][Of::kPixels * Of::kSourceStride];
    alignas(16) float sums[1][Of::kWarpPixels * Of::kSumsStride];  // behind the last chunk
  };
  alignas(16) typename Of::T filter[2][Of::kFilterLines * Of::kFilterStride];
};

// What is not there is zero.
template <typename Of>
__device__ inline void StartFilter(const Product<typename Of::T>& of, int first_depth,
                                   typename Of::T* to) {
  constexpr int kParts = Of::kFilterLine / 8;
  const int first_column = static_cast<int>(blockIdx.x) * Of::kColumns;
#pragma unroll
  for (int i = 0; i < Of::kFilterLines * kParts / kBlockThreads; ++i) {
    const int line = Thread() / kParts + i * (kBlockThreads / kParts);
    const int part = Thread() % kParts * 8;
    const int column = first_column + (Of::kAlongDepth ? line : part);
    const int depth = first_depth + (Of::kAlongDepth ? part : line);
    typename Of::T* const eight = to + line * Of::kFilterStride + part;
    if (column < of.columns && depth < of.depth) {
      StartCopy(eight, of.filter + (Of::kAlongDepth ? column * of.depth + depth
                                                    : depth * of.columns + column));
    } else {
      StoreEight(Eight<typename Of::T>{}, eight);
    }
  }
}

template <typename Of>
using Sums = TileSum[Of::kRowTiles][Of::kColumnTiles];

// Adds a chunk's product to the warp's sums.
template <typename Of>
__device__ inline void Multiply(const typename Of::T* source, const typename Of::T* filter,
                                Sums<Of>& sums) {
  const int warp = Thread() / 32;
  const int row = warp / Of::kWarpsAcross * Of::kWarpPixels;
  const int column = warp % Of::kWarpsAcross * Of::kWarpColumns;
  // One step after the other, for their registers.
#pragma unroll 1
  for (int depth = 0; depth < Of::kChunk; depth += kEdge) {
    Operand<typename Of::T, Of::kCores, Side::kA, Major::kK> left[Of::kRowTiles];
#pragma unroll
    for (int i = 0; i < Of::kRowTiles; ++i) {
      LoadOperand(
          [&](int line, int part) {
            return source + (row + i * kEdge + line) * Of::kSourceStride + depth + part * 8;
          },
          left[i]);
    }
#pragma unroll
    for (int j = 0; j < Of::kColumnTiles; ++j) {
      Operand<typename Of::T, Of::kCores, Side::kB, Of::kFilterMajor> right;
      LoadOperand(
          [&](int line, int part) {
            const int lines = Of::kAlongDepth ? column + j * kEdge : depth;
            const int first = Of::kAlongDepth ? depth : column + j * kEdge;
            return filter + (lines + line) * Of::kFilterStride + first + part * 8;
          },
          right);
#pragma unroll
      for (int i = 0; i < Of::kRowTiles; ++i) MultiplyAdd(left[i], right, sums[i][j]);
    }
  }
}

// Behind the product sums go through shared memory in groups of eight rows of each warp, two groups
// at a time: what is done with makes room in registers.
constexpr int kRowsOfWarp = 8;
struct Group {
  float* sums[1];  // as ReadSums has them
};
// The thread's row e of those, in the tile.
template <typename Of>
__device__ inline int RowOfTile(int group, int e) {
  static_assert(Of::kRowsAtOnce % kRowsOfWarp == 0);
  constexpr int kWarpsAtOnce = Of::kRowsAtOnce / kRowsOfWarp;
  const int row = rows_product::OwnRow<Of>(0);
  return row / kRowsOfWarp * Of::kWarpPixels + row % kRowsOfWarp +
         (e * kWarpsAtOnce * Of::kWarpPixels + group * kRowsOfWarp);
}

// Calls end.Load and end.Use for the tile's rows, and front.Load for the tile from pixel `next` on,
// once there is room for what either loads.  `free`: a chunk of the filter that was multiplied.
template <typename Of, typename Front, typename End>
__device__ inline void UseSums(const Sums<Of>& sums, int first, int next, Shared<Of>& shared,
                               typename Of::T* free, Front& front, End& end) {
  const int warp = Thread() / 32;
  const int down = warp / Of::kWarpsAcross;
  const int column = warp % Of::kWarpsAcross * Of::kWarpColumns;
  constexpr int kGroupsOfTile = kEdge / kRowsOfWarp;
  const Group groups[kGroupsOfTile] = {{{shared.sums[0]}}, {{reinterpret_cast<float*>(free)}}};
  static_assert(sizeof(shared.sums) <= sizeof(shared.filter[0]));
#pragma unroll
  for (int i = 0; i < Of::kRowTiles; ++i) {
    __syncthreads();
#pragma unroll
    for (int j = 0; j < Of::kColumnTiles; ++j) {
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        const float* values = sums[i][j].values + 2 * pair;
        float* to = groups[pair % kGroupsOfTile].sums[0] +
                    (down * kRowsOfWarp + TileRow<Of::kCores>(0)) * Of::kSumsStride + column +
                    j * kEdge + TileColumn<Of::kCores>(2 * pair);
        *reinterpret_cast<float2*>(to) = make_float2(values[0], values[1]);
      }
    }
    if (i == 0) {
#pragma unroll
      for (int e = 0; e < Of::kRows; ++e) end.Load(e, first + RowOfTile<Of>(0, e));
    }
    __syncthreads();
    if (i == Of::kRowTiles / 2) front.Load(next, 0);
#pragma unroll
    for (int half = 0; half < kGroupsOfTile; ++half) {
      const int group = i * kGroupsOfTile + half;
#pragma unroll
      for (int e = 0; e < Of::kRows; ++e) {
        float values[8];
        rows_product::ReadSums<Of>(groups[half], rows_product::OwnRow<Of>(e), values);
        end.Use(e, first + RowOfTile<Of>(group, e), values);
        if ((group + 1) * kRowsOfWarp < Of::kWarpPixels) {
          end.Load(e, first + RowOfTile<Of>(group + 1, e));
        }
      }
    }
  }
  end.AddUp(shared);
  __syncthreads();
}

// As rows_product::MultiplyRows, but that it calls front.Load(first pixel, first of the depth) and
// front.Store(the same, rows of a chunk) for each chunk of the depth, and end.AddUp(shared) behind
// each tile.
template <typename Of, typename Front, typename End>
__device__ inline void MultiplyRows(const Product<typename Of::T>& of, Shared<Of>& shared,
                                    Front& front, End& end) {
  const int tiles = (of.pixels + Of::kPixels - 1) / Of::kPixels;
  int tile = static_cast<int>(blockIdx.y);
  int stage = 0;
  front.Load(tile * Of::kPixels, 0);
  StartFilter<Of>(of, 0, shared.filter[0]);
  __syncthreads();  // for what is in front
  while (tile < tiles) {
    const int first = tile * Of::kPixels;
    tile += static_cast<int>(gridDim.y);
    Sums<Of> sums = {};
    for (int depth = 0; depth < of.depth;) {
      front.Store(first, depth, shared.source[stage]);
      depth += Of::kChunk;
      const bool is_last = depth >= of.depth;
      if (!is_last) front.Load(first, depth);
      WaitForCopies();
      __syncthreads();
      if (!is_last || tile < tiles) {
        StartFilter<Of>(of, is_last ? 0 : depth, shared.filter[1 - stage]);
      }
      Multiply<Of>(shared.source[stage], shared.filter[stage], sums);
      stage = 1 - stage;
    }
    UseSums<Of>(sums, first, tile * Of::kPixels, shared, shared.filter[1 - stage], front, end);
  }
}

}  // namespace streamed_product
}  // namespace trainer
