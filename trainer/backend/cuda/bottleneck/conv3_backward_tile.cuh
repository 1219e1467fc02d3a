// SPDX-License-Identifier: Apache-2.0
//
// One tile of pixels of a thread block of conv3_backward.h: what it reads, what it makes of that
// for its products, and what it does with the data gradient.

#pragma once

#include "trainer/backend/cuda/bottleneck/conv3_backward.h"
#include "trainer/backend/cuda/runtime/element.cuh"
#include "trainer/backend/cuda/runtime/tile_mma.cuh"

namespace trainer {
namespace conv3_backward {

constexpr int kChannels = kConv3Channels;
constexpr int kFilters = kConv3Filters;
constexpr int kEdge = 16;  // of the tiles of a product
constexpr int kBlockThreads = 512;
constexpr int kWarps = kBlockThreads / 32;
constexpr int kColumnTiles = kChannels / kEdge;
// Of the filter's gradient each warp has two by two tiles.
static_assert(kWarps * 2 * kEdge * 2 * kEdge == kFilters * kChannels && kChannels == 4 * kEdge);
// Rows in shared memory are an odd number of parts of 16 bytes long (tile_mma.cuh).
constexpr int kWideRow = kFilters + 8;
constexpr int kNarrowRow = kChannels + 8;

// How a block goes over its pixels.  Of the data gradient each warp has a tile of kEdge pixels by
// kEdge channels, over a share of the filters, so that its part of the filter stays in registers.
template <TensorCores cores>
struct BlockTile {
  // As many as registers for the operands of quad pairs leave room for.
  static constexpr int kPixels = cores == TensorCores::kWholeWarp ? 32 : 16;
  static constexpr int kPixelTiles = kPixels / kEdge;
  static constexpr int kFirstShare = kColumnTiles * kPixelTiles;  // warps
  static constexpr int kDepth = kFilters / (kWarps / kFirstShare);
  static constexpr int kSteps = kDepth / kEdge;
  static constexpr int kWideEights = kPixels * kFilters / 8 / kBlockThreads;  // of a thread
  static constexpr int kNarrowPairs = kPixels * kChannels / 2 / kBlockThreads;
};

// The columns of a thread in a tile: values 4 * i and 4 * i + 1 of TileSum have two neighbours, and
// so have the two behind.
constexpr int kColumnPairs = 2;

template <typename T, TensorCores cores>
struct Shared {
  static constexpr int kPixels = BlockTile<cores>::kPixels;
  alignas(16) T wide[kPixels * kWideRow];      // the gradient of what the convolution gives
  alignas(16) T src[kPixels * kNarrowRow];     // what the convolution reads
  alignas(16) T before[kPixels * kNarrowRow];  // what the batch norm before it has read
  float shares[kWarps - BlockTile<cores>::kFirstShare][8][32];
  // Of the gradient that goes out: of two neighbouring columns of each thread the products, then
  // the sums.
  float2 sums[2][kColumnPairs][BlockTile<cores>::kFirstShare * 32];
  // Channels 8 * j + 2 * i and the next at [i][j]: neighbouring threads, each with eight channels,
  // read neighbours.  The gradient behind is of_gradient * gradient + of_input * input + rest.
  float2 of_gradient[4][kFilters / 8], of_input[4][kFilters / 8], rest[4][kFilters / 8];
  alignas(8) float mean_before[kChannels], inverse[kChannels], factor[kChannels], shift[kChannels];
};

template <typename T, TensorCores cores>
__device__ inline void LoadCoefficients(const Conv3Backward& call, Shared<T, cores>& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kFilters / 2) {
    const int i = thread % 4;
    const int j = thread / 4;
    const auto two = [&](const float* of) {
      return make_float2(of[2 * thread], of[2 * thread + 1]);
    };
    const float2 of_input = two(call.coefficients + kFilters);
    const float2 rest = two(call.coefficients + 2 * kFilters);
    const float2 mean = two(call.means);
    shared.of_gradient[i][j] = two(call.coefficients);
    shared.of_input[i][j] = of_input;
    shared.rest[i][j] = make_float2(rest.x - of_input.x * mean.x, rest.y - of_input.y * mean.y);
  }
  if (thread < kChannels) {
    const float inverse = call.saved[kChannels + thread];
    shared.mean_before[thread] = call.saved[thread];
    shared.inverse[thread] = inverse;
    shared.factor[thread] = call.saved[2 * kChannels + thread] * inverse;
    shared.shift[thread] = call.saved[3 * kChannels + thread];
  }
}

template <typename T, TensorCores cores>
using FilterOperand = Operand<T, cores, Side::kB, Major::kMN>;

// Through shared memory, some rows at a time.
template <typename T, TensorCores cores>
__device__ inline void LoadFilter(const T* filter, int first_row, Shared<T, cores>& shared,
                                  FilterOperand<T, cores> (&to)[BlockTile<cores>::kSteps]) {
  constexpr int kRows = 2 * kEdge;
  const int thread = static_cast<int>(threadIdx.x);
  const int columns = thread / 32 % kColumnTiles * kEdge;
#pragma unroll
  for (int row = 0; row < kFilters; row += kRows) {
    if (thread < kRows * kChannels / 8) {
      const int at = thread / 8;
      StoreEight(LoadEight(filter + (row + at) * kChannels + thread % 8 * 8),
                 shared.wide + at * kNarrowRow + thread % 8 * 8);
    }
    __syncthreads();
    if (row / BlockTile<cores>::kDepth == first_row / BlockTile<cores>::kDepth) {
#pragma unroll
      for (int tile = 0; tile < 2; ++tile) {
        LoadOperand(
            [&](int line, int part) {
              return shared.wide + (tile * kEdge + line) * kNarrowRow + columns + part * 8;
            },
            to[row % BlockTile<cores>::kDepth / kEdge + tile]);
      }
    }
    __syncthreads();
  }
}

// What a thread reads for one tile, of pixels kWarps apart.
template <typename T, TensorCores cores>
struct Loaded {
  Eight<T> gradient[BlockTile<cores>::kWideEights];
  Eight<T> convolved[BlockTile<cores>::kWideEights];
  unsigned mask[BlockTile<cores>::kWideEights];
  unsigned before[BlockTile<cores>::kNarrowPairs];
};

// Calls call(e, row) for each of the `count` rows of pixels of which a thread has eight filters, or
// two channels.
template <int count, typename Call>
__device__ inline void ForRows(const Call& call) {
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int e = 0; e < count; ++e) call(e, thread / 32 + e * kWarps);
}

// Rows from `first` on, of which those from `pixels` on are not there.
template <typename T, TensorCores cores>
__device__ inline void LoadEights(const Conv3Backward& call, int first, int e, int pixels,
                                  Loaded<T, cores>& to) {
  const int thread = static_cast<int>(threadIdx.x);
  const int pixel = first + thread / 32 + e * kWarps;
  if (pixel < 0 || pixel >= pixels) return;
  const std::int64_t at = static_cast<std::int64_t>(first) * kFilters +
                          ((thread / 32 + e * kWarps) * kFilters + thread % 32 * 8);
  to.gradient[e] = LoadEight(static_cast<const T*>(call.gradient) + at);
  to.convolved[e] = LoadEight(static_cast<const T*>(call.convolved) + at);
  to.mask[e] = call.mask == nullptr ? 0xFFU : call.mask[at / 8];
}
template <typename T, TensorCores cores>
__device__ inline void LoadPair(const Conv3Backward& call, int first, int e, int pixels,
                                Loaded<T, cores>& to) {
  const int thread = static_cast<int>(threadIdx.x);
  const int pixel = first + thread / 32 + e * kWarps;
  if (pixel < 0 || pixel >= pixels) return;
  const T* from = static_cast<const T*>(call.before) +
                  static_cast<std::int64_t>(first) * kChannels +
                  ((thread / 32 + e * kWarps) * kChannels + thread % 32 * 2);
  to.before[e] = *reinterpret_cast<const unsigned*>(from);
}
// All that a thread reads for the tile.
template <typename T, TensorCores cores>
__device__ inline void Load(const Conv3Backward& call, int first, int pixels,
                            Loaded<T, cores>& to) {
  ForRows<BlockTile<cores>::kWideEights>(
      [&](int e, int /*row*/) { LoadEights(call, first, e, pixels, to); });
  ForRows<BlockTile<cores>::kNarrowPairs>(
      [&](int e, int /*row*/) { LoadPair(call, first, e, pixels, to); });
}

// Applies both batch norms to what was loaded: what the products read is in shared memory then.
// Pixels that are not there have zeros.  Instead of each part those of the tile from `next`
// on are loaded, if that is not before the first pixel.
template <typename T, TensorCores cores>
__device__ inline void Apply(const Conv3Backward& call, int first, int next, int pixels,
                             Loaded<T, cores>& loaded, Shared<T, cores>& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  const int group = thread % 32;
  // The coefficients of a pair of channels are read once for all rows, since it is shared memory
  // that this kernel waits for.  Instead of what was loaded comes what goes out.
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    const float2 of_gradient = shared.of_gradient[pair][group];
    const float2 of_input = shared.of_input[pair][group];
    const float2 rest = shared.rest[pair][group];
    ForRows<BlockTile<cores>::kWideEights>([&](int e, int /*row*/) {
      const unsigned passes = loaded.mask[e] >> 2 * pair;
      unsigned& gradient = loaded.gradient[e].words[pair];
      unsigned& input = loaded.convolved[e].words[pair];
      gradient &= ((passes & 1U) != 0 ? 0xFFFFU : 0U) + ((passes & 2U) != 0 ? 0xFFFF0000U : 0U);
      const float2 g = ToFloats(gradient, T{});
      const float2 x = ToFloats(input, T{});
      input = ToWord(of_gradient.x * g.x + (of_input.x * x.x + rest.x),
                     of_gradient.y * g.y + (of_input.y * x.y + rest.y), T{});
    });
  }
  ForRows<BlockTile<cores>::kWideEights>([&](int e, int row) {
    const bool is_there = first + row < pixels;
    if (is_there && call.diff_residual != nullptr) {
      StoreEight(loaded.gradient[e], static_cast<T*>(call.diff_residual) +
                                         static_cast<std::int64_t>(first) * kFilters +
                                         (row * kFilters + group * 8));
    }
    StoreEight(is_there ? loaded.convolved[e] : Eight<T>{},
               shared.wide + row * kWideRow + group * 8);
    LoadEights(call, next, e, pixels, loaded);
  });
  const int channel = thread % 32 * 2;
  const auto two = [&](const float* of) { return *reinterpret_cast<const float2*>(of + channel); };
  const float2 mean = two(shared.mean_before);
  const float2 factor = two(shared.factor);
  const float2 shift = two(shared.shift);
  ForRows<BlockTile<cores>::kNarrowPairs>([&](int e, int row) {
    unsigned before = 0;
    unsigned src = 0;
    if (first + row < pixels) {
      before = loaded.before[e];
      const float2 x = ToFloats(before, T{});
      const float left = (x.x - mean.x) * factor.x + shift.x;
      const float right = (x.y - mean.y) * factor.y + shift.y;
      // What is not a number stays it.
      src = ToWord(left < 0 ? 0.0F : left, right < 0 ? 0.0F : right, T{});
    }
    *reinterpret_cast<unsigned*>(shared.before + row * kNarrowRow + channel) = before;
    *reinterpret_cast<unsigned*>(shared.src + row * kNarrowRow + channel) = src;
    LoadPair(call, next, e, pixels, loaded);
  });
}

// Takes a tile of the data gradient back through the ReLU before the convolution.  `before` are
// words of what was read there, one for each pair of values.
template <typename T, TensorCores cores>
__device__ inline void Finish(const Conv3Backward& call, int first, int pixels, int columns,
                              const unsigned (&before)[4], const TileSum& sum,
                              Shared<T, cores>& shared) {
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    // Pairs 2 * half and 2 * half + 1 have the same columns.
    const int column = columns + TileColumn<cores>(4 * half);
    const auto two = [&](const float* of) { return *reinterpret_cast<const float2*>(of + column); };
    const float2 mean = two(shared.mean_before);
    const float2 inverse = two(shared.inverse);
    const float2 factor = two(shared.factor);
    const float2 shift = two(shared.shift);
    float2 products = {};
    float2 sums = {};
#pragma unroll
    for (int pair = 2 * half; pair < 2 * half + 2; ++pair) {
      const int row = TileRow<cores>(2 * pair);
      const float2 x = ToFloats(before[pair], T{});
      const float2 moved = make_float2(x.x - mean.x, x.y - mean.y);
      const float* values = sum.values + 2 * pair;
      const unsigned word = ToWord(moved.x * factor.x + shift.x > 0 ? values[0] : 0.0F,
                                   moved.y * factor.y + shift.y > 0 ? values[1] : 0.0F, T{});
      if (first + row >= pixels) continue;
      *reinterpret_cast<unsigned*>(static_cast<T*>(call.diff_src) +
                                   static_cast<std::int64_t>(first + row) * kChannels + column) =
          word;
      const float2 stored = ToFloats(word, T{});
      products.x += stored.x * (moved.x * inverse.x);
      products.y += stored.y * (moved.y * inverse.y);
      sums.x += stored.x;
      sums.y += stored.y;
    }
    float2& all_products = shared.sums[0][half][thread];
    float2& all_sums = shared.sums[1][half][thread];
    all_products = make_float2(all_products.x + products.x, all_products.y + products.y);
    all_sums = make_float2(all_sums.x + sums.x, all_sums.y + sums.y);
  }
}

}  // namespace conv3_backward
}  // namespace trainer
