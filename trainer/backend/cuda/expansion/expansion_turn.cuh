// SPDX-License-Identifier: Apache-2.0
//
// One turn of a block of the kernel of expansion_kernels.h: what it reads, what it makes of that
// for its products, and what it does with the data gradient.

#pragma once

#include "trainer/backend/cuda/expansion/expansion_kernels.h"
#include "trainer/backend/cuda/runtime/element.cuh"
#include "trainer/backend/cuda/runtime/tile_product.cuh"

namespace trainer {
namespace expansion {

constexpr int kChannels = kExpansionChannels;
constexpr int kFilters = kExpansionFilters;
constexpr int kEdge = 16;  // of the tiles of a product
constexpr int kBlockThreads = 512;
constexpr int kWarps = kBlockThreads / 32;
static_assert(kWarps * kEdge == kFilters);
constexpr int kColumnTiles = kChannels / kEdge;
// Rows in shared memory are an odd number of parts of 16 bytes long (tile_product.cuh).
constexpr int kWideRow = kFilters + 8;
constexpr int kNarrowRow = kChannels + 8;

// How a block goes over its pixels.  Of the data gradient each warp has a tile of kEdge pixels by
// kEdge channels, over a share of the filters, so that its part of the filter stays in registers.
template <TensorCores cores>
struct Turn {
  // As many as registers for the operands of quad pairs leave room for.
  static constexpr int kPixels = cores == TensorCores::kWholeWarp ? 32 : 16;
  static constexpr int kPixelTiles = kPixels / kEdge;
  static constexpr int kFirstShare = kColumnTiles * kPixelTiles;  // warps
  static constexpr int kDepth = kFilters / (kWarps / kFirstShare);
  static constexpr int kSteps = kDepth / kEdge;
  static constexpr int kWideEights = kPixels * kFilters / 8 / kBlockThreads;  // of a thread
  static constexpr int kNarrowPairs = kPixels * kChannels / 2 / kBlockThreads;
};

// The four columns of a thread in a tile, of which values 2 * i and 2 * i + 1 of TileSum have two.
constexpr int kOwnColumns = 4;
__device__ inline int OwnColumn(int value) { return value / 4 * 2 + value % 2; }

template <typename T, TensorCores cores>
struct Shared {
  static constexpr int kPixels = Turn<cores>::kPixels;
  alignas(16) T wide[kPixels * kWideRow];      // the gradient of what the convolution gives
  alignas(16) T src[kPixels * kNarrowRow];     // what the convolution reads
  alignas(16) T before[kPixels * kNarrowRow];  // what the batch norm before it has read
  float shares[kWarps - Turn<cores>::kFirstShare][8][32];
  // Of the gradient that goes out: of each thread's columns the products, then the sums.
  float sums[2][kOwnColumns][Turn<cores>::kFirstShare * 32];
  // Channel 8 * j + i at [i][j]: neighbouring threads, each with eight channels, read neighbours.
  float mean[8][kFilters / 8], of_gradient[8][kFilters / 8];
  float of_input[8][kFilters / 8], rest[8][kFilters / 8];
  float mean_before[kChannels], inverse[kChannels], factor[kChannels], shift[kChannels];
};

template <typename T, TensorCores cores>
__device__ inline void LoadCoefficients(const ExpansionBackward& call, Shared<T, cores>& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  const int i = thread % 8;
  const int j = thread / 8;
  if (thread < kFilters) {
    shared.mean[i][j] = call.means[thread];
    shared.of_gradient[i][j] = call.coefficients[thread];
    shared.of_input[i][j] = call.coefficients[kFilters + thread];
    shared.rest[i][j] = call.coefficients[2 * kFilters + thread];
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
using FilterOperand = Operand<T, cores, Side::kB, Neighbours::kEdge>;

// Through shared memory, some rows at a time.
template <typename T, TensorCores cores>
__device__ inline void LoadFilter(const T* filter, int first_row, Shared<T, cores>& shared,
                                  FilterOperand<T, cores> (&to)[Turn<cores>::kSteps]) {
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
    if (row / Turn<cores>::kDepth == first_row / Turn<cores>::kDepth) {
#pragma unroll
      for (int tile = 0; tile < 2; ++tile) {
        LoadOperand(
            [&](int line, int part) {
              return shared.wide + (tile * kEdge + line) * kNarrowRow + columns + part * 8;
            },
            to[row % Turn<cores>::kDepth / kEdge + tile]);
      }
    }
    __syncthreads();
  }
}

// What a thread reads for one turn, of pixels kWarps apart.
template <typename T, TensorCores cores>
struct Loaded {
  Eight<T> gradient[Turn<cores>::kWideEights];
  Eight<T> convolved[Turn<cores>::kWideEights];
  unsigned mask[Turn<cores>::kWideEights];
  unsigned before[Turn<cores>::kNarrowPairs];
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
__device__ inline void LoadEights(const ExpansionBackward& call, int first, int e, int pixels,
                                  Loaded<T, cores>& to) {
  const int thread = static_cast<int>(threadIdx.x);
  const int pixel = first + thread / 32 + e * kWarps;
  if (pixel < 0 || pixel >= pixels) return;
  const std::int64_t at = static_cast<std::int64_t>(pixel) * kFilters + thread % 32 * 8;
  to.gradient[e] = LoadEight(static_cast<const T*>(call.gradient) + at);
  to.convolved[e] = LoadEight(static_cast<const T*>(call.convolved) + at);
  to.mask[e] = call.mask[at / 8];
}
template <typename T, TensorCores cores>
__device__ inline void LoadPair(const ExpansionBackward& call, int first, int e, int pixels,
                                Loaded<T, cores>& to) {
  const int thread = static_cast<int>(threadIdx.x);
  const int pixel = first + thread / 32 + e * kWarps;
  if (pixel < 0 || pixel >= pixels) return;
  const T* from = static_cast<const T*>(call.before) +
                  static_cast<std::int64_t>(pixel) * kChannels + thread % 32 * 2;
  to.before[e] = *reinterpret_cast<const unsigned*>(from);
}
// All that a thread reads for the turn.
template <typename T, TensorCores cores>
__device__ inline void Load(const ExpansionBackward& call, int first, int pixels,
                            Loaded<T, cores>& to) {
  ForRows<Turn<cores>::kWideEights>(
      [&](int e, int /*row*/) { LoadEights(call, first, e, pixels, to); });
  ForRows<Turn<cores>::kNarrowPairs>(
      [&](int e, int /*row*/) { LoadPair(call, first, e, pixels, to); });
}

// Applies both batch norms to what was loaded: what the products read is in shared memory then.
// Pixels that are not there have zeros.  In place of each part those of the turn from `next` on are
// loaded, if that is not before the first pixel.
template <typename T, TensorCores cores>
__device__ inline void Apply(const ExpansionBackward& call, int first, int next, int pixels,
                             Loaded<T, cores>& loaded, Shared<T, cores>& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  ForRows<Turn<cores>::kWideEights>([&](int e, int row) {
    const int group = thread % 32;
    Eight<T> dx = {};
    if (first + row < pixels) {
      Eight<T> gradient;
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        const unsigned passes = loaded.mask[e] >> 2 * pair;
        gradient.words[pair] =
            loaded.gradient[e].words[pair] &
            (((passes & 1U) != 0 ? 0xFFFFU : 0U) + ((passes & 2U) != 0 ? 0xFFFF0000U : 0U));
        const float2 g = ToFloats(gradient.words[pair], T{});
        const float2 x = ToFloats(loaded.convolved[e].words[pair], T{});
        const auto differentiate = [&](int i, float of_gradient, float of_convolved) {
          return shared.of_gradient[i][group] * of_gradient +
                 shared.of_input[i][group] * (of_convolved - shared.mean[i][group]) +
                 shared.rest[i][group];
        };
        dx.words[pair] =
            ToWord(differentiate(2 * pair, g.x, x.x), differentiate(2 * pair + 1, g.y, x.y), T{});
      }
      if (call.diff_residual != nullptr) {
        StoreEight(gradient, static_cast<T*>(call.diff_residual) +
                                 static_cast<std::int64_t>(first + row) * kFilters + group * 8);
      }
    }
    StoreEight(dx, shared.wide + row * kWideRow + group * 8);
    LoadEights(call, next, e, pixels, loaded);
  });
  ForRows<Turn<cores>::kNarrowPairs>([&](int e, int row) {
    const int channel = thread % 32 * 2;
    unsigned before = 0;
    unsigned src = 0;
    if (first + row < pixels) {
      before = loaded.before[e];
      const float2 x = ToFloats(before, T{});
      const auto normalize = [&](int c, float value) {
        const float moved = value - shared.mean_before[c];
        const float normed = moved * shared.factor[c] + shared.shift[c];
        return normed < 0 ? 0.0F : normed;  // what is not a number stays it
      };
      src = ToWord(normalize(channel, x.x), normalize(channel + 1, x.y), T{});
    }
    *reinterpret_cast<unsigned*>(shared.before + row * kNarrowRow + channel) = before;
    *reinterpret_cast<unsigned*>(shared.src + row * kNarrowRow + channel) = src;
    LoadPair(call, next, e, pixels, loaded);
  });
}

// Takes a tile of the data gradient back through the ReLU before the convolution.  `before` are
// words of what was read there, one for each pair of values.
template <typename T, TensorCores cores>
__device__ inline void Finish(const ExpansionBackward& call, int first, int pixels, int columns,
                              const unsigned (&before)[4], const TileSum& sum,
                              Shared<T, cores>& shared) {
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    const int row = TileRow<cores>(2 * pair);
    const int column = columns + TileColumn<cores>(2 * pair);
    const float2 x = ToFloats(before[pair], T{});
    float normalized[2];
    float gradient[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float moved = (i == 0 ? x.x : x.y) - shared.mean_before[column + i];
      const bool passes = moved * shared.factor[column + i] + shared.shift[column + i] > 0;
      normalized[i] = moved * shared.inverse[column + i];
      gradient[i] = passes ? sum.values[2 * pair + i] : 0.0F;
    }
    const unsigned word = ToWord(gradient[0], gradient[1], T{});
    if (first + row >= pixels) continue;
    *reinterpret_cast<unsigned*>(static_cast<T*>(call.diff_src) +
                                 static_cast<std::int64_t>(first + row) * kChannels + column) =
        word;
    const float2 stored = ToFloats(word, T{});
    const int own = OwnColumn(2 * pair);
    const int thread = static_cast<int>(threadIdx.x);
    shared.sums[0][own][thread] += stored.x * normalized[0];
    shared.sums[0][own + 1][thread] += stored.y * normalized[1];
    shared.sums[1][own][thread] += stored.x;
    shared.sums[1][own + 1][thread] += stored.y;
  }
}

}  // namespace expansion
}  // namespace trainer
