// SPDX-License-Identifier: Apache-2.0
//
// A 1x1 convolution's product over rows of pixels, source (pixels x depth) times filter (depth x
// columns), with anything in front and behind.  In front: what is multiplied is read, or made of
// what is read, each element once.  Behind: each thread keeps to eight columns and gets their sums
// in fp32, as the passes of batch_norm_passes.cuh have their values.
//
// A thread block stays: it takes its columns of the filter into registers (and shared memory),
// once, and goes over tiles of pixels, gridDim.y tiles apart.  While a tile is multiplied, what its
// end reads and the source of the next tile are under way.  blockIdx.x says which columns.
//
// Clocks of a tile of 32 pixels on an H200, where a multiprocessor has 18 bytes of memory a clock:
//                                          memory           shared memory   mma.sync
//   conv1_backward, 128 to 256 channels    2,900 (53 KB)    about 1,750     800
//   conv1x1_forward, 256 to 64             3,000 (54 KB)    about 1,550     400
//                    256 to 128            3,250 (58 KB)    about 2,050     800
//                    512 to 128            6,000 (109 KB)   about 3,850     1,600
//     one batch norm, 64 to 256            1,150 (20 KB)    about 1,050     400
//   conv3_data_gradient, 512 to 128        6,400 (115 KB)   about 3,900     1,600
// Of shared memory about half is for the source, which the warps of each column tile read.

#pragma once

#include <algorithm>

#include "trainer/backend/cuda/runtime/element.cuh"
#include "trainer/backend/cuda/runtime/tile_mma.cuh"

namespace trainer {
namespace rows_product {

constexpr int kEdge = 16;  // of the tiles of a product
constexpr int kBlockThreads = 512;
constexpr int kWarps = kBlockThreads / 32;

template <typename Of>
struct Shared;

// Each warp has kEdge columns of the filter, over a share of the depth: all of it in 32 registers,
// or part of it in 24 and the rest in shared memory, which leaves room for others.  The filter in
// memory is depth x columns (Major::kMN) or columns x depth (Major::kK).
template <typename Element, TensorCores cores, int depth, int columns, Major filter_major,
          int pixels = 32>
struct Tile {
  using T = Element;
  using Shared = rows_product::Shared<Tile>;
  static constexpr TensorCores kCores = cores;
  static constexpr Major kFilterMajor = filter_major;
  static constexpr bool kKeepsSums = false;  // in registers
  static constexpr int kPixels = pixels;
  static constexpr int kDepth = depth;
  static constexpr int kColumns = columns;
  static constexpr int kColumnTiles = kColumns / kEdge;
  static_assert(kWarps % kColumnTiles == 0);
  static constexpr int kShares = kWarps / kColumnTiles;
  static constexpr int kShare = kDepth / kShares;
  static constexpr int kSteps = kShare / kEdge;
  using FilterOperand = Operand<T, cores, Side::kB, filter_major>;
  static constexpr int kRegisters = sizeof(FilterOperand) / sizeof(unsigned);
  static constexpr int kKeptSteps = kSteps * kRegisters <= 32 ? kSteps : 24 / kRegisters;
  static constexpr int kKeptOperands = kKeptSteps;
  static constexpr int kSharedSteps = kSteps - kKeptSteps;
  // In front of the product a thread has eight neighbours of the depth, of some rows.
  static constexpr int kSourceThreads = kDepth / 8;
  static constexpr int kSourceRowsAtOnce = kBlockThreads / kSourceThreads;
  static constexpr int kSourceRows = (kPixels + kSourceRowsAtOnce - 1) / kSourceRowsAtOnce;
  // Behind it a thread has eight columns of some rows.
  static constexpr int kThreadsAcross = kColumns / 8;
  static constexpr int kRowsAtOnce = kBlockThreads / kThreadsAcross;
  static constexpr int kRows = (kPixels + kRowsAtOnce - 1) / kRowsAtOnce;
  // Rows in shared memory.  The source is read by tile_mma.cuh; of the sums four rows are written
  // at once, eight floats of each.
  static constexpr int kSourceStride = kDepth + 8;
  static constexpr int kSumsStride = kColumns + 8;
};

template <typename Of>
struct Shared {
  alignas(16) typename Of::T source[Of::kPixels * Of::kSourceStride];
  alignas(16) float sums[Of::kShares][Of::kPixels * Of::kSumsStride];
  // Of each thread, those steps of the filter that are not in its registers.
  static constexpr int kFilterSteps = Of::kSharedSteps;
  static_assert(kFilterSteps == 0 || sizeof(typename Of::FilterOperand) == sizeof(uint4));
  uint4 filter[kFilterSteps == 0 ? 1 : kFilterSteps * kBlockThreads];
};

// `depth` and `columns` are multiples of 8.
template <typename T>
struct Product {
  const T* filter;
  int pixels, depth, columns;
};

// All thread blocks of the grid run from the beginning, one on each multiprocessor.
template <typename Of>
dim3 GridOf(std::int64_t pixels, int columns, int sms) {
  DDL_CHECK(pixels > 0 && pixels < std::int64_t{1} << 30);
  const int across = (columns + Of::kColumns - 1) / Of::kColumns;
  const std::int64_t tiles = (pixels + Of::kPixels - 1) / Of::kPixels;
  const std::int64_t down = std::max(sms / across, 1);
  return dim3(static_cast<unsigned>(across), static_cast<unsigned>(std::min(tiles, down)));
}

__device__ inline int Thread() { return static_cast<int>(threadIdx.x); }

// The first of the eight of the depth that a thread has in front of the product, and its row e of a
// tile; neither may be there.
template <typename Of>
__device__ inline int SourceChannel() {
  return Thread() % Of::kSourceThreads * 8;
}
template <typename Of>
__device__ inline int SourceRow(int e) {
  return e * Of::kSourceRowsAtOnce + Thread() / Of::kSourceThreads;
}
template <typename Of>
__device__ inline bool HasSourceRow(int e) {
  return Of::kSourceRowsAtOnce <= Of::kPixels || SourceRow<Of>(e) < Of::kPixels;
}
template <typename Of>
__device__ inline void StoreSource(int e, const Eight<typename Of::T>& eight,
                                   typename Of::T* rows) {
  StoreEight(eight, rows + SourceRow<Of>(e) * Of::kSourceStride + SourceChannel<Of>());
}

// The same behind the product, of its eight columns.
template <typename Of>
__device__ inline int OwnColumn() {
  return static_cast<int>(blockIdx.x) * Of::kColumns + Thread() % Of::kThreadsAcross * 8;
}
template <typename Of>
__device__ inline int OwnRow(int e) {
  return e * Of::kRowsAtOnce + Thread() / Of::kThreadsAcross;
}
template <typename Of>
__device__ inline bool HasRow(int e) {
  return Of::kRowsAtOnce <= Of::kPixels || OwnRow<Of>(e) < Of::kPixels;
}

// What is in front where the source is in memory as it is multiplied.
template <typename Of>
class SourceInMemory {
  using T = typename Of::T;

 public:
  __device__ SourceInMemory(const T* source, const Product<T>& of) : source_(source), of_(of) {}

  __device__ void Load(int first, int depth) {
#pragma unroll
    for (int e = 0; e < Of::kSourceRows; ++e) {
      const int row = SourceRow<Of>(e);
      const int channel = depth + SourceChannel<Of>();
      eights_[e] = Eight<T>{};
      if (!HasSourceRow<Of>(e) || first + row >= of_.pixels || channel >= of_.depth) continue;
      // The first summand is the same for all threads.
      eights_[e] = LoadEight(source_ + static_cast<std::int64_t>(first) * of_.depth +
                             (row * of_.depth + channel));
    }
  }
  __device__ void Store(int /*first*/, int /*depth*/, T* rows) {
#pragma unroll
    for (int e = 0; e < Of::kSourceRows; ++e) {
      if (HasSourceRow<Of>(e)) StoreSource<Of>(e, eights_[e], rows);
    }
  }

 private:
  const T* const source_;
  const Product<T>& of_;
  Eight<T> eights_[Of::kSourceRows];
};

// Through shared memory, some of the depth at a time.  What is not there is zero.
template <typename Of>
__device__ inline void LoadFilter(const Product<typename Of::T>& of, Shared<Of>& shared,
                                  typename Of::FilterOperand (&to)[Of::kKeptOperands]) {
  using T = typename Of::T;
  constexpr bool kAlongDepth = Of::kFilterMajor == Major::kK;
  constexpr int kAtOnce = 2 * kEdge;
  constexpr int kLines = kAlongDepth ? Of::kColumns : kAtOnce;
  constexpr int kLine = kAlongDepth ? kAtOnce : Of::kColumns;
  constexpr int kStride = kLine + 8;
  static_assert(kLines * kStride * sizeof(T) <= sizeof(shared.sums));
  T* const lines = reinterpret_cast<T*>(&shared.sums[0][0]);
  const int warp = Thread() / 32;
  const int first_column = static_cast<int>(blockIdx.x) * Of::kColumns;
  const int own_column = warp % Of::kColumnTiles * kEdge;
#pragma unroll
  for (int first = 0; first < Of::kDepth; first += kAtOnce) {
    for (int i = Thread(); i < kLines * kLine / 8; i += kBlockThreads) {
      const int line = i / (kLine / 8);
      const int at = i % (kLine / 8) * 8;
      const int depth = first + (kAlongDepth ? at : line);
      const int column = first_column + (kAlongDepth ? line : at);
      Eight<T> eight = {};
      if (depth < of.depth && column < of.columns) {
        eight = LoadEight(of.filter +
                          (kAlongDepth ? static_cast<std::int64_t>(column) * of.depth + depth
                                       : static_cast<std::int64_t>(depth) * of.columns + column));
      }
      StoreEight(eight, lines + line * kStride + at);
    }
    __syncthreads();
    if (first / Of::kShare == warp / Of::kColumnTiles) {
#pragma unroll
      for (int tile = 0; tile < 2; ++tile) {
        const int step = first % Of::kShare / kEdge + tile;
        typename Of::FilterOperand operand;
        LoadOperand(
            [&](int line, int part) {
              return kAlongDepth ? lines + (own_column + line) * kStride + tile * kEdge + part * 8
                                 : lines + (tile * kEdge + line) * kStride + own_column + part * 8;
            },
            operand);
        if (step < Of::kKeptSteps) {
          to[step] = operand;
        } else {
          shared.filter[(step - Of::kKeptSteps) * kBlockThreads + Thread()] =
              make_uint4(operand.words[0], operand.words[1], operand.words[2], operand.words[3]);
        }
      }
    }
    __syncthreads();
  }
}

// The warp's tiles of sums, of its share of the depth, to shared memory.  `rows`: the source's.
template <typename Of>
__device__ inline void Multiply(const typename Of::FilterOperand (&filter)[Of::kKeptOperands],
                                const typename Of::T* rows, Shared<Of>& shared) {
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
      Operand<typename Of::T, Of::kCores, Side::kA, Major::kK> source;
      LoadOperand(
          [&](int line, int part) {
            return rows + (tile * kEdge + line) * Of::kSourceStride + share * Of::kShare +
                   step * kEdge + part * 8;
          },
          source);
      if (step < Of::kKeptSteps) {
        MultiplyAdd(source, filter[step], sum);
      } else {
        const uint4 words = shared.filter[(step - Of::kKeptSteps) * kBlockThreads + Thread()];
        const typename Of::FilterOperand operand = {{words.x, words.y, words.z, words.w}};
        MultiplyAdd(source, operand, sum);
      }
    }
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      float* to = shared.sums[share] +
                  (tile * kEdge + TileRow<Of::kCores>(2 * pair)) * Of::kSumsStride + column +
                  TileColumn<Of::kCores>(2 * pair);
      *reinterpret_cast<float2*>(to) = make_float2(sum.values[2 * pair], sum.values[2 * pair + 1]);
    }
  }
}

// A thread's eight columns of one row, added up over the shares.
template <typename Of, typename SharedMemory>
__device__ inline void ReadSums(const SharedMemory& shared, int row, float (&values)[8]) {
  // Eight neighbouring threads read 16 bytes each at once: from different banks if every second
  // four of them begin with their second half.
  const int half = Thread() / 4 % 2;
#pragma unroll
  for (int share = 0; share < Of::kShares; ++share) {
    const float* from =
        shared.sums[share] + row * Of::kSumsStride + Thread() % Of::kThreadsAcross * 8;
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

// Calls, for each tile, front.Load(first pixel, first of the depth) some time before front.Store(
// the same, rows), which is to store all of a thread's source that HasSourceRow (zero where it is
// not there), and, for each of its rows that HasRow, end.Load(e, pixel) some time before end.Use(e,
// pixel, sums), where e is a constant; then end.AddUp(shared), which is for all threads to do.
// Pixels from of.pixels on are not there, and columns may not be.
template <typename Of, typename Front, typename End>
__device__ inline void MultiplyRows(const Product<typename Of::T>& of, Shared<Of>& shared,
                                    Front& front, End& end) {
  typename Of::FilterOperand filter[Of::kKeptOperands];
  LoadFilter<Of>(of, shared, filter);
  const int tiles = (of.pixels + Of::kPixels - 1) / Of::kPixels;
  int tile = static_cast<int>(blockIdx.y);
  front.Load(tile * Of::kPixels, 0);
#pragma unroll
  for (int e = 0; e < Of::kRows; ++e) {
    if (HasRow<Of>(e)) end.Load(e, tile * Of::kPixels + OwnRow<Of>(e));
  }
  while (tile < tiles) {
    const int first = tile * Of::kPixels;
    tile += static_cast<int>(gridDim.y);
    front.Store(first, 0, shared.source);
    front.Load(tile * Of::kPixels, 0);
    __syncthreads();
    Multiply<Of>(filter, shared.source, shared);
    __syncthreads();
#pragma unroll
    for (int e = 0; e < Of::kRows; ++e) {
      if (!HasRow<Of>(e)) continue;
      float sums[8];
      ReadSums<Of>(shared, OwnRow<Of>(e), sums);
      end.Use(e, first + OwnRow<Of>(e), sums);
      end.Load(e, tile * Of::kPixels + OwnRow<Of>(e));
    }
  }
  end.AddUp(shared);
}

// Adds the threads' values of their columns up over the rows of the block: of the first threads,
// for each its column, OwnSum().
template <typename Of>
__device__ inline int OwnSum() {
  return static_cast<int>(blockIdx.x) * Of::kColumns + Thread();
}
template <typename Of, typename SharedMemory>
__device__ inline float SumOverRows(const float (&values)[8], SharedMemory& shared) {
  static_assert(sizeof(shared.sums) >= sizeof(float) * Of::kRowsAtOnce * Of::kColumns);
  float* const rows = &shared.sums[0][0];
  __syncthreads();  // others may still read it
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    rows[OwnRow<Of>(0) * Of::kColumns + Thread() % Of::kThreadsAcross * 8 + i] = values[i];
  }
  __syncthreads();
  float all = 0;
  if (Thread() >= Of::kColumns) return all;
  for (int row = 0; row < Of::kRowsAtOnce; ++row) all += rows[row * Of::kColumns + Thread()];
  return all;
}

}  // namespace rows_product
}  // namespace trainer
