// SPDX-License-Identifier: Apache-2.0
//
// A 1x1 convolution's product over rows of pixels, source (pixels x depth) times filter (depth x
// columns), with anything behind it: each thread keeps to eight columns and gets their sums in
// fp32, as the passes of batch_norm_passes.cuh have their values.
//
// A thread block stays: it takes its columns of the filter into registers, once, and goes over
// tiles of pixels, gridDim.y tiles apart.  While a tile is multiplied, what its end reads and the
// source of the next tile are under way.  blockIdx.x says which columns.
//
// Of one tile of 32 pixels and 256 columns, depth 128, on an H200: 2,900 clocks of its bytes (53 KB
// at 18 a clock), about 1,750 of shared memory (1,024 of them for the source, which each warp
// reads), 800 of mma.sync.

#pragma once

#include "trainer/backend/cuda/runtime/element.cuh"
#include "trainer/backend/cuda/runtime/tile_mma.cuh"

namespace trainer {
namespace rows_product {

constexpr int kEdge = 16;  // of the tiles of a product
constexpr int kBlockThreads = 512;
constexpr int kWarps = kBlockThreads / 32;

// Each warp has kEdge columns of the filter, over a share of the depth that leaves room for other
// registers: 32 for the filter.
template <TensorCores cores, int depth>
struct Tile {
  static constexpr int kPixels = 32;
  static constexpr int kMaxShare = cores == TensorCores::kWholeWarp ? 128 : 64;
  static constexpr int kShare = depth < kMaxShare ? depth : kMaxShare;
  static constexpr int kShares = depth / kShare;
  static constexpr int kSteps = kShare / kEdge;
  static constexpr int kColumnTiles = kWarps / kShares;
  static constexpr int kColumns = kColumnTiles * kEdge;
  // Of what is behind the product: a thread has eight columns of some rows.
  static constexpr int kThreadsAcross = kColumns / 8;
  static constexpr int kRowsAtOnce = kBlockThreads / kThreadsAcross;
  static constexpr int kRows = kPixels / kRowsAtOnce;
  static constexpr int kSourceEights = kPixels * depth / 8;  // of all threads
  static constexpr int kOwnEights = (kSourceEights + kBlockThreads - 1) / kBlockThreads;
  // Rows in shared memory.  The source is read by tile_mma.cuh; of the sums four rows are written
  // at once, eight floats of each.
  static constexpr int kSourceRow = depth + 8;
  static constexpr int kSumsRow = kColumns + 8;
};

template <typename T, TensorCores cores, int depth>
struct Shared {
  using Of = Tile<cores, depth>;
  alignas(16) T source[Of::kPixels * Of::kSourceRow];
  alignas(16) float sums[Of::kShares][Of::kPixels * Of::kSumsRow];
};

// Of what is multiplied, `depth` and `columns` are multiples of 8.
template <typename T>
struct Operands {
  const T* source;
  const T* filter;
  int pixels, depth, columns;
};

__device__ inline int Thread() { return static_cast<int>(threadIdx.x); }

// The first of a thread's eight columns, which may not be there.
template <typename Of>
__device__ inline int OwnColumn() {
  return static_cast<int>(blockIdx.x) * Of::kColumns + Thread() % Of::kThreadsAcross * 8;
}
// Its row e of a tile.
template <typename Of>
__device__ inline int OwnRow(int e) {
  return e * Of::kRowsAtOnce + Thread() / Of::kThreadsAcross;
}

template <typename T, TensorCores cores>
using FilterOperand = Operand<T, cores, Side::kB, Major::kMN>;

// Through shared memory, some rows at a time.  What is not there is zero.
template <typename T, TensorCores cores, int depth>
__device__ inline void LoadFilter(const Operands<T>& of, Shared<T, cores, depth>& shared,
                                  FilterOperand<T, cores> (&to)[Tile<cores, depth>::kSteps]) {
  using Of = Tile<cores, depth>;
  constexpr int kRows = 2 * kEdge;
  constexpr int kRow = Of::kColumns + 8;
  static_assert(kRows * kRow * sizeof(T) <= sizeof(shared.sums));
  T* const rows = reinterpret_cast<T*>(&shared.sums[0][0]);
  const int warp = Thread() / 32;
  const int first_column = static_cast<int>(blockIdx.x) * Of::kColumns;
#pragma unroll
  for (int first = 0; first < depth; first += kRows) {
    for (int i = Thread(); i < kRows * Of::kColumns / 8; i += kBlockThreads) {
      const int row = i / (Of::kColumns / 8);
      const int column = i % (Of::kColumns / 8) * 8;
      Eight<T> eight = {};
      if (first + row < of.depth && first_column + column < of.columns) {
        eight = LoadEight(of.filter + static_cast<std::int64_t>(first + row) * of.columns +
                          first_column + column);
      }
      StoreEight(eight, rows + row * kRow + column);
    }
    __syncthreads();
    if (first / Of::kShare == warp / Of::kColumnTiles) {
#pragma unroll
      for (int tile = 0; tile < 2; ++tile) {
        LoadOperand(
            [&](int line, int part) {
              return rows + (tile * kEdge + line) * kRow + warp % Of::kColumnTiles * kEdge +
                     part * 8;
            },
            to[first % Of::kShare / kEdge + tile]);
      }
    }
    __syncthreads();
  }
}

// Its part of the source's rows from `first` on.  What is not there is zero.
template <typename T, TensorCores cores, int depth>
__device__ inline void LoadSource(const Operands<T>& of, int first,
                                  Eight<T> (&to)[Tile<cores, depth>::kOwnEights]) {
#pragma unroll
  for (int e = 0; e < Tile<cores, depth>::kOwnEights; ++e) {
    const int number = Thread() + e * kBlockThreads;
    const int pixel = first + number / (depth / 8);
    const int at = number % (depth / 8) * 8;
    to[e] = Eight<T>{};
    if (number >= Tile<cores, depth>::kSourceEights || pixel >= of.pixels || at >= of.depth) {
      continue;
    }
    to[e] = LoadEight(of.source + static_cast<std::int64_t>(pixel) * of.depth + at);
  }
}
template <typename T, TensorCores cores, int depth>
__device__ inline void StoreSource(const Eight<T> (&from)[Tile<cores, depth>::kOwnEights],
                                   Shared<T, cores, depth>& shared) {
#pragma unroll
  for (int e = 0; e < Tile<cores, depth>::kOwnEights; ++e) {
    const int number = Thread() + e * kBlockThreads;
    if (number >= Tile<cores, depth>::kSourceEights) continue;
    StoreEight(from[e], shared.source + number / (depth / 8) * Tile<cores, depth>::kSourceRow +
                            number % (depth / 8) * 8);
  }
}

// The warp's tiles of sums, of its share of the depth, to shared memory.
template <typename T, TensorCores cores, int depth>
__device__ inline void Multiply(const FilterOperand<T, cores> (&filter)[Tile<cores, depth>::kSteps],
                                Shared<T, cores, depth>& shared) {
  using Of = Tile<cores, depth>;
  constexpr int kTiles = Of::kPixels / kEdge;
  const int warp = Thread() / 32;
  const int share = warp / Of::kColumnTiles;
  const int column = warp % Of::kColumnTiles * kEdge;
  // One tile after the other, for their registers: two products at once in each of 16 warps are
  // enough.
#pragma unroll 1
  for (int tile = 0; tile < kTiles; ++tile) {
    TileSum sum = {};
#pragma unroll
    for (int step = 0; step < Of::kSteps; ++step) {
      Operand<T, cores, Side::kA, Major::kK> source;
      LoadOperand(
          [&](int line, int part) {
            return shared.source + (tile * kEdge + line) * Of::kSourceRow + share * Of::kShare +
                   step * kEdge + part * 8;
          },
          source);
      MultiplyAdd(source, filter[step], sum);
    }
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      float* to = shared.sums[share] + (tile * kEdge + TileRow<cores>(2 * pair)) * Of::kSumsRow +
                  column + TileColumn<cores>(2 * pair);
      *reinterpret_cast<float2*>(to) = make_float2(sum.values[2 * pair], sum.values[2 * pair + 1]);
    }
  }
}

// A thread's eight columns of one row, added up over the shares.
template <typename T, TensorCores cores, int depth>
__device__ inline void ReadSums(const Shared<T, cores, depth>& shared, int row,
                                float (&values)[8]) {
  using Of = Tile<cores, depth>;
  // Eight neighbouring threads read 16 bytes each at once: from different banks if every second
  // four of them begin with their second half.
  const int half = Thread() / 4 % 2;
#pragma unroll
  for (int share = 0; share < Of::kShares; ++share) {
    const float* from = shared.sums[share] + row * Of::kSumsRow + Thread() % Of::kThreadsAcross * 8;
    const float4 a = *reinterpret_cast<const float4*>(from + 4 * half);
    const float4 b = *reinterpret_cast<const float4*>(from + 4 - 4 * half);
    const float left[] = {a.x, a.y, a.z, a.w};
    const float right[] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float low = half == 0 ? left[i] : right[i];
      const float high = half == 0 ? right[i] : left[i];
      values[i] = share == 0 ? low : values[i] + low;
      values[4 + i] = share == 0 ? high : values[4 + i] + high;
    }
  }
}

// Calls, for each of a thread's rows of each tile, end.Load(e, pixel) some time before
// end.Use(e, pixel, sums), where e is a constant; pixels from of.pixels on are not there, and
// columns may not be.
template <typename T, TensorCores cores, int depth, typename End>
__device__ inline void MultiplyRows(const Operands<T>& of, Shared<T, cores, depth>& shared,
                                    End& end) {
  using Of = Tile<cores, depth>;
  FilterOperand<T, cores> filter[Of::kSteps];
  LoadFilter(of, shared, filter);
  const int tiles = (of.pixels + Of::kPixels - 1) / Of::kPixels;
  int tile = static_cast<int>(blockIdx.y);
  Eight<T> source[Of::kOwnEights];
  LoadSource<T, cores, depth>(of, tile * Of::kPixels, source);
#pragma unroll
  for (int e = 0; e < Of::kRows; ++e) end.Load(e, tile * Of::kPixels + OwnRow<Of>(e));
  while (tile < tiles) {
    const int first = tile * Of::kPixels;
    tile += static_cast<int>(gridDim.y);
    StoreSource<T, cores, depth>(source, shared);
    LoadSource<T, cores, depth>(of, tile * Of::kPixels, source);
    __syncthreads();
    Multiply<T, cores, depth>(filter, shared);
    __syncthreads();
#pragma unroll
    for (int e = 0; e < Of::kRows; ++e) {
      float sums[8];
      ReadSums<T, cores, depth>(shared, OwnRow<Of>(e), sums);
      end.Use(e, first + OwnRow<Of>(e), sums);
      end.Load(e, tile * Of::kPixels + OwnRow<Of>(e));
    }
  }
}

// Adds a thread's values of its columns up over the rows of the block, to to[column].
template <typename T, TensorCores cores, int depth>
__device__ inline void SumOverRows(const float (&values)[8], int columns,
                                   Shared<T, cores, depth>& shared, float* to) {
  using Of = Tile<cores, depth>;
  static_assert(sizeof(shared.sums) >= sizeof(float) * Of::kRowsAtOnce * Of::kColumns);
  float* const rows = &shared.sums[0][0];
  __syncthreads();  // others may still read it
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    rows[OwnRow<Of>(0) * Of::kColumns + Thread() % Of::kThreadsAcross * 8 + i] = values[i];
  }
  __syncthreads();
  const int column = static_cast<int>(blockIdx.x) * Of::kColumns + Thread();
  if (Thread() >= Of::kColumns || column >= columns) return;
  float all = 0;
  for (int row = 0; row < Of::kRowsAtOnce; ++row) all += rows[row * Of::kColumns + Thread()];
  to[column] = all;
}

}  // namespace rows_product
}  // namespace trainer
