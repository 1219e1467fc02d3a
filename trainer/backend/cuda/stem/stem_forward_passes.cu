// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/norms/batch_norm_passes.cuh"
#include "trainer/backend/cuda/stem/stem_passes.h"
#include "trainer/backend/cuda/stem/stem_tiles.cuh"
#include "trainer/backend/cuda/stem/stem_windows.cuh"

namespace trainer {
namespace stem {
namespace {

using batch_norm::ForwardChannels;
using batch_norm::Statistics;
using batch_norm::Track;

// Four warps with the filters in registers: of so many tiles of channels each, and the warps with
// the same ones take turns at the rows.
constexpr int kForwardThreads = 128;
constexpr int kForwardAtOnce = 3;
template <TensorCores cores>
constexpr int kChannelTiles = cores == TensorCores::kWholeWarp ? 2 : 1;
template <TensorCores cores>
constexpr int kRowGroups = kForwardThreads / 32 / (kChannels / 16 / kChannelTiles<cores>);

template <typename T, TensorCores cores>
struct WarpFilters {
  static constexpr int kTiles = kChannelTiles<cores>;
  int row_group;  // of this warp
  int channel;    // its first
  Filters<T, cores> of[kTiles][kSteps];

  __device__ explicit WarpFilters(const T* lines) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    row_group = warp % kRowGroups<cores>;
    channel = warp / kRowGroups<cores> * kTiles * 16;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        LoadOperandFromAnywhere(
            [&](int line, int part) {
              return lines + (channel + tile * 16 + line) * kFilterLine + step * 16 + part * 8;
            },
            of[tile][step]);
      }
    }
  }

  template <int rows>
  __device__ __forceinline__ void Convolve(const Patch<T, rows>& patch, int row,
                                           TileSum (&sums)[kTiles]) const {
#pragma unroll
    for (TileSum& sum : sums) sum = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      Pixels<T, cores> pixels;
      LoadPixels(patch, row, step, pixels);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) MultiplyAdd(pixels, of[tile][step], sums[tile]);
    }
  }
};

// Tiles of the pass of sums.
constexpr int kSumRows = 8;

template <typename T, TensorCores cores>
__global__ void __launch_bounds__(kForwardThreads, kForwardAtOnce)
    ConvolvedSums(const T* blocks, const T* lines, Plane plane, int tiles, float* partial) {
  SynchronizeGridDependencies();
  constexpr int kTiles = kChannelTiles<cores>;
  constexpr int kShares = 8 * kRowGroups<cores>;
  const Patch<T, kSumRows> patch = {reinterpret_cast<T*>(GivenShared())};
  const WarpFilters<T, cores> filters(lines);
  float sum[kTiles][4] = {};
  float squares[kTiles][4] = {};
  for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
    const TilePlace place = PlaceOf(tile, plane);
    __syncthreads();  // the tile before may still be read
    patch.template Load<kForwardThreads>(blocks, place, plane);
    __syncthreads();
    for (int row = filters.row_group; row < kSumRows; row += kRowGroups<cores>) {
      if (place.top + row >= plane.height) break;
      TileSum x[kTiles];
      filters.Convolve(patch, row, x);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (place.left + TileRow<cores>(i) >= plane.width) continue;
#pragma unroll
        for (int of = 0; of < kTiles; ++of) {
          const float value = x[of].values[i];
          sum[of][ColumnSlot(i)] += value;
          squares[of][ColumnSlot(i)] += value * value;
        }
      }
    }
  }
  __syncthreads();
  auto* shares = reinterpret_cast<float(*)[kChannels][kShares]>(GivenShared());
  const int share = filters.row_group * 8 + ColumnShare<cores>();
#pragma unroll
  for (int of = 0; of < kTiles; ++of) {
#pragma unroll
    for (int slot = 0; slot < 4; ++slot) {
      const int channel = filters.channel + of * 16 + TileColumn<cores>(FirstOfSlot(slot));
      shares[0][channel][share] = sum[of][slot];
      shares[1][channel][share] = squares[of][slot];
    }
  }
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.x);  // as many as there are sums
  float all = 0;
  for (int i = 0; i < kShares; ++i) all += shares[thread / kChannels][thread % kChannels][i];
  partial[blockIdx.x * 2 * kChannels + threadIdx.x] = all;
}

__global__ void FinishBnStats(const float* partial, int blocks, float* sums) {
  SynchronizeGridDependencies();
  const batch_norm::TwoSums of = batch_norm::SumOfPartials(partial, blocks, kChannels);
  if (threadIdx.y != 0) return;
  sums[batch_norm::LaneChannel()] = of.first;
  sums[kChannels + batch_norm::LaneChannel()] = of.second;
}

// Tiles of the pass that pools: 8 x 7 windows, of 17 x 15 pixels.
constexpr int kWindowRows = 8;
constexpr int kWindowColumns = 7;
constexpr int kPoolRows = 2 * kWindowRows + 1;
static_assert(2 * kWindowColumns + 1 <= kTileColumns);

// Two numbers of 16 bits as integers without a sign, in the same order; what is not a number is the
// largest.  None becomes zero.
__device__ inline unsigned Ordered(unsigned word) {
  const unsigned negative = word >> 15 & 0x00010001U;
  return word ^ (negative * 0xFFFFU | 0x80008000U);
}
__device__ inline unsigned Unordered(unsigned ordered) {  // one of them
  return ordered ^ ((ordered & 0x8000U) != 0 ? 0x8000U : 0xFFFFU);
}

// The batch norm of all channels in shared memory, and the tile before the pool: of each pixel and
// channel the convolution's result, its sign turned where the batch norm turns it, as Ordered has
// it, so that the largest after batch norm is the largest here; zero outside of the image.
template <typename T>
struct PoolMemory {
  static constexpr int kPixelElements = kChannels + 8;  // an odd number of 16 bytes
  static constexpr int kPixels = kPoolRows * kTileColumns;
  float factor[kChannels], mean[kChannels], shift[kChannels];
  alignas(16) unsigned short ordered[kPixels * kPixelElements];
  alignas(16) T patch[Patch<T, kPoolRows>::kElements];
};

// The pool's window: of eight neighbours the largest, and its place; the first one of several.
__device__ __forceinline__ void FindLargest(const unsigned short* ordered, int pixel_elements,
                                            unsigned (&best)[8]) {
#pragma unroll
  for (unsigned& of : best) of = 0;
#pragma unroll 1  // with all nine at once registers spill
  for (unsigned row = 0; row < 3; ++row) {
    const unsigned short* line = ordered + row * kTileColumns * pixel_elements;
    const unsigned rank = 8 - 3 * row;
#pragma unroll
    for (unsigned column = 0; column < 3; ++column) {
      const uint4 eight = *reinterpret_cast<const uint4*>(line + column * pixel_elements);
      const unsigned words[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        best[2 * i] = max(best[2 * i], words[i] << 16 | (rank - column));
        best[2 * i + 1] = max(best[2 * i + 1], (words[i] & 0xFFFF0000U) | (rank - column));
      }
    }
  }
}

template <typename T>
__device__ inline void PoolEight(const PoolMemory<T>& memory, const unsigned (&best)[8],
                                 int channel, std::int64_t at, T* dst, const Kept& kept) {
  float y[8];
  float input[8];
  unsigned winner[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float factor = memory.factor[channel + i];
    const unsigned bits = Unordered(best[i] >> 16);
    const float x = ToFloats(bits, T{}).x * (factor < 0 ? -1.0F : 1.0F);
    y[i] = (x - memory.mean[channel + i]) * factor + memory.shift[channel + i];
    const bool is_stopped = y[i] <= 0;  // what is not a number goes through
    if (is_stopped) y[i] = 0;
    input[i] = is_stopped ? 0.0F : x;
    winner[i] = is_stopped ? kNobody : 8 - (best[i] & 0xFU);
  }
  Store8(y, dst + at);
  KeepChosen<T>(kept, at, input, winner);
}

template <typename T, TensorCores cores>
__global__ void __launch_bounds__(kForwardThreads, kForwardAtOnce)
    ConvolveAndPool(const T* blocks, const T* lines, Plane plane, int tiles, Extents e,
                    Statistics statistics, T* dst, Kept kept) {
  SynchronizeGridDependencies();
  constexpr int kTiles = kChannelTiles<cores>;
  constexpr int kPixelElements = PoolMemory<T>::kPixelElements;
  PoolMemory<T>& memory = *reinterpret_cast<PoolMemory<T>*>(GivenShared());
  const Patch<T, kPoolRows> patch = {memory.patch};
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kChannels / 8) {
    // The first block keeps and moves the statistics.
    const ForwardChannels channels(statistics,
                                   Track{thread * 8, static_cast<int>(blockIdx.x), 1, 1});
    for (int i = 0; i < 8; ++i) {
      memory.factor[thread * 8 + i] = channels.factor[i];
      memory.mean[thread * 8 + i] = channels.mean[i];
      memory.shift[thread * 8 + i] = channels.shift[i];
    }
  }
  __syncthreads();
  const WarpFilters<T, cores> filters(lines);
  float turn[kTiles][4];
#pragma unroll
  for (int of = 0; of < kTiles; ++of) {
#pragma unroll
    for (int slot = 0; slot < 4; ++slot) {
      const int channel = filters.channel + of * 16 + TileColumn<cores>(FirstOfSlot(slot));
      turn[of][slot] = memory.factor[channel] < 0 ? -1.0F : 1.0F;
    }
  }
  for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
    const TilePlace place = PlaceOf(tile, plane);
    patch.template Load<kForwardThreads>(blocks, place, plane);
    __syncthreads();  // also: the windows of the tile before have been read
    for (int row = filters.row_group; row < kPoolRows; row += kRowGroups<cores>) {
      TileSum x[kTiles];
      filters.Convolve(patch, row, x);
      const bool has_row = place.top + row >= 0 && place.top + row < plane.height;
#pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const int column = TileRow<cores>(i);
        const int w = place.left + column;
        const bool is_there = has_row && w >= 0 && w < plane.width;
#pragma unroll
        for (int of = 0; of < kTiles; ++of) {
          const unsigned word = ToWord(x[of].values[i] * turn[of][ColumnSlot(i)],
                                       x[of].values[i + 1] * turn[of][ColumnSlot(i + 1)], T{});
          const int channel = filters.channel + of * 16 + TileColumn<cores>(i);
          *reinterpret_cast<unsigned*>(memory.ordered +
                                       (row * kTileColumns + column) * kPixelElements + channel) =
              is_there ? Ordered(word) : 0U;
        }
      }
    }
    __syncthreads();
    const int channel = thread % (kChannels / 8) * 8;
    for (int i = thread / (kChannels / 8); i < kWindowRows * kWindowColumns;
         i += kForwardThreads / (kChannels / 8)) {
      const int row = i / kWindowColumns;
      const int column = i % kWindowColumns;
      const int h = (place.top + 1) / 2 + row;
      const int w = (place.left + 1) / 2 + column;
      if (h >= e.out_height || w >= e.out_width) continue;
      unsigned best[8];
      FindLargest(memory.ordered + (2 * row * kTileColumns + 2 * column) * kPixelElements + channel,
                  kPixelElements, best);
      const int index = (place.n * e.out_height + h) * e.out_width + w;
      PoolEight(memory, best, channel, batch_norm::ElementOf(index, kChannels) + channel, dst,
                kept);
    }
  }
}

Plane SumPlane(const StemImages& images) { return PlaneOf(images, kSumRows, kTileColumns, 0); }
Plane PoolPlane(const StemImages& images) {
  return PlaneOf(images, 2 * kWindowRows, 2 * kWindowColumns, -1);
}

}  // namespace

std::int64_t ForwardScratchFloats(const StemSize& size) {
  return std::int64_t{BlocksOver(SumPlane(size.images), size, kForwardAtOnce)} * 2 * kChannels;
}

}  // namespace stem

bool HasStemPasses(const StemSize& size) {
  const bool multiplies =
      size.norm.dtype == DType::kFloat16 ||
      (size.norm.dtype == DType::kBFloat16 && size.cores == TensorCores::kWholeWarp);
  return multiplies && size.norm.padded == stem::kChannels;
}

std::int64_t StemScratchFloats(const StemSize& size) {
  return std::max(stem::ForwardScratchFloats(size), stem::BackwardScratchFloats(size));
}

void RunBnStats(const StemSize& size, const StemOperands& operands, float* scratch, float* sums,
                CUstream_st* stream) {
  const stem::Plane plane = stem::SumPlane(size.images);
  const int grid = stem::BlocksOver(plane, size, stem::kForwardAtOnce);
  stem::WithTensorCores(size, [&](auto zero, auto cores) {
    using T = decltype(zero);
    constexpr std::size_t kShares =
        2 * stem::kChannels * 8 * stem::kRowGroups<cores> * sizeof(float);
    constexpr std::size_t kPatch = stem::Patch<T, stem::kSumRows>::kElements * sizeof(T);
    LaunchWithShared(std::max(kPatch, kShares), stem::ConvolvedSums<T, cores>,
                     static_cast<unsigned>(grid), stem::kForwardThreads, stream,
                     static_cast<const T*>(operands.blocks), static_cast<const T*>(operands.lines),
                     plane, plane.tiles(), scratch);
  });
  Launch(stem::FinishBnStats, batch_norm::LaneGrid(stem::kChannels),
         dim3(batch_norm::kLaneChannels, batch_norm::kLanes), stream, scratch, grid, sums);
}

void RunConvolvedForward(const StemSize& size, const StemOperands& operands,
                         const NormParameters& parameters, const PooledNormForward& call,
                         CUstream_st* stream) {
  const NormForward& c = call.norm;
  DDL_CHECK(!c.of_batch || c.src.sums != nullptr);
  const batch_norm::Statistics of = batch_norm::FindStatistics(
      size.norm, parameters, {.sums = c.src.sums}, c.of_batch, c.saved, nullptr, stream);
  const stem::Plane plane = stem::PoolPlane(size.images);
  stem::WithTensorCores(size, [&](auto zero, auto cores) {
    using T = decltype(zero);
    LaunchWithShared(sizeof(stem::PoolMemory<T>), stem::ConvolveAndPool<T, cores>,
                     static_cast<unsigned>(stem::BlocksOver(plane, size, stem::kForwardAtOnce)),
                     stem::kForwardThreads, stream, static_cast<const T*>(operands.blocks),
                     static_cast<const T*>(operands.lines), plane, plane.tiles(),
                     ExtentsOf(size.images), of, static_cast<T*>(call.dst),
                     Kept{call.chosen, call.winners, call.mask});
  });
}

}  // namespace trainer
