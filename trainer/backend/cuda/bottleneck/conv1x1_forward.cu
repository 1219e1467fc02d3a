// SPDX-License-Identifier: Apache-2.0

#include <type_traits>

#include "trainer/backend/cuda/bottleneck/conv1x1_forward.h"
#include "trainer/backend/cuda/bottleneck/norm_rows.cuh"
#include "trainer/backend/cuda/bottleneck/rows_product.cuh"
#include "trainer/backend/cuda/bottleneck/streamed_product.cuh"

namespace trainer {
namespace conv1x1_forward {
namespace {

using batch_norm::Statistics;
using norm_rows::NormalizedRows;
using norm_rows::SummedRows;

// With the end of a block in front, all filters in one thread block.
constexpr int kMaxChannels = 512;
constexpr int kMaxFilters = 128;
// The same where registers have room for the filter.
constexpr int kMaxKeptChannels = 256;
constexpr int kMaxFiltersOfQuadPairs = 64;
// The same where the filter comes in chunks.
constexpr int kMaxStreamedChannels = 1024;
constexpr int kMaxStreamedFilters = 256;
// With one batch norm in front, which each of the blocks across does anew.
constexpr int kMaxChannelsBehindNorm = 128;
constexpr int kMaxChannelsBehindNormOfQuadPairs = 64;
constexpr int kFiltersBehindNorm = 256;  // of a block

template <typename T>
using StreamedTile = streamed_product::Tile<T, kMaxStreamedChannels, Major::kK>;

template <typename Of, NormsInFront norms>
__global__ void __launch_bounds__(rows_product::kBlockThreads, 1)
    ForwardKernel(Conv1x1Forward call, Statistics first, Statistics second, int pixels,
                  int filters) {
  SynchronizeGridDependencies();
  using T = typename Of::T;
  using Front = NormalizedRows<Of, norms>;
  auto& shared = *reinterpret_cast<typename Of::Shared*>(GivenShared());
  __shared__ typename Front::Coefficients coefficients;
  Front front(call.front, first, second, pixels, coefficients);
  SummedRows<Of> behind(static_cast<T*>(call.dst), pixels, filters);
  const rows_product::Product<T> product = {static_cast<const T*>(call.filter), pixels,
                                            first.padded, filters};
  MultiplyRows(product, shared, front, behind);  // of either kind of tile
  if (call.partial_sums != nullptr) behind.StorePartialSums(call.partial_sums);
}

template <typename T, TensorCores cores, int channels, int filters, int pixels = 32>
using Tile = rows_product::Tile<T, cores, channels, filters, Major::kK, pixels>;

template <NormsInFront norms>
using Norms = std::integral_constant<NormsInFront, norms>;

// Tiles of 64 pixels, which are as many bytes as 32 with a wider source.
template <typename T, typename Call>
auto WithTileBehindNorm(const Conv1x1ForwardShape& shape, const Call& call) {
  constexpr Norms<NormsInFront::kNorm> kNorms;
  if constexpr (std::is_same_v<T, __half>) {
    if (TensorCoresOf(shape.compute_capability) == TensorCores::kQuadPairs) {
      return call(
          Tile<T, TensorCores::kQuadPairs, kMaxChannelsBehindNormOfQuadPairs, kFiltersBehindNorm>(),
          kNorms);
    }
  }
  constexpr TensorCores kCores = TensorCores::kWholeWarp;
  if (shape.src.padded <= 64) return call(Tile<T, kCores, 64, kFiltersBehindNorm, 64>(), kNorms);
  return call(Tile<T, kCores, kMaxChannelsBehindNorm, kFiltersBehindNorm, 64>(), kNorms);
}

template <typename T, typename Kind, typename Call>
auto WithTileOf(const Conv1x1ForwardShape& shape, Kind norms, const Call& call) {
  if constexpr (std::is_same_v<T, __half>) {
    if (TensorCoresOf(shape.compute_capability) == TensorCores::kQuadPairs) {
      return call(Tile<T, TensorCores::kQuadPairs, kMaxKeptChannels, kMaxFiltersOfQuadPairs>(),
                  norms);
    }
  }
  constexpr TensorCores kCores = TensorCores::kWholeWarp;
  if (shape.src.padded > kMaxChannels || shape.filters > kMaxFilters) {
    return call(StreamedTile<T>(), norms);
  }
  if (shape.src.padded > kMaxKeptChannels) {
    return call(Tile<T, kCores, kMaxChannels, kMaxFilters>(), norms);
  }
  if (shape.filters <= 64) return call(Tile<T, kCores, kMaxKeptChannels, 64>(), norms);
  return call(Tile<T, kCores, kMaxKeptChannels, kMaxFilters>(), norms);
}
// Calls call(tile, norms), whose types are those of a product of so many filters, and of what is in
// front of it.
template <typename Call>
auto WithTile(const Conv1x1ForwardShape& shape, const Call& call) {
  const auto with_type = [&](auto zero) {
    using T = decltype(zero);
    switch (shape.norms) {
      case NormsInFront::kNorm:
        return WithTileBehindNorm<T>(shape, call);
      case NormsInFront::kNormAndResidual:
        return WithTileOf<T>(shape, Norms<NormsInFront::kNormAndResidual>(), call);
      case NormsInFront::kDualNorm:
        break;
    }
    return WithTileOf<T>(shape, Norms<NormsInFront::kDualNorm>(), call);
  };
  if (shape.src.dtype == DType::kFloat16) return with_type(__half{});
  return with_type(__nv_bfloat16{});
}

// Of a thread block, all in all.
std::size_t SharedBytes(const Conv1x1ForwardShape& shape) {
  return WithTile(shape, [](auto tile, auto norms) {
    using Of = decltype(tile);
    return sizeof(typename Of::Shared) + sizeof(typename NormalizedRows<Of, norms>::Coefficients);
  });
}

template <typename Of>
dim3 GridOf(const Conv1x1ForwardShape& shape) {
  return rows_product::GridOf<Of>(shape.src.pixels, shape.filters, shape.src.sms);
}

// Whether there is a tile: of so many channels and filters.
bool HasTile(const Conv1x1ForwardShape& shape) {
  const int channels = shape.src.padded;
  const bool has_quad_pairs = shape.compute_capability == 7;
  if (shape.norms == NormsInFront::kNorm) {
    return channels <=
           (has_quad_pairs ? kMaxChannelsBehindNormOfQuadPairs : kMaxChannelsBehindNorm);
  }
  return channels <= (has_quad_pairs ? kMaxKeptChannels : kMaxStreamedChannels) &&
         shape.filters <= (has_quad_pairs ? kMaxFiltersOfQuadPairs : kMaxStreamedFilters);
}

}  // namespace
}  // namespace conv1x1_forward

bool HasConv1x1Forward(const Conv1x1ForwardShape& shape) {
  const DType dtype = shape.src.dtype;
  const int capability = shape.compute_capability;
  const bool has_type = (dtype == DType::kFloat16 && capability >= 7) ||
                        (dtype == DType::kBFloat16 && capability >= 8);
  return has_type && conv1x1_forward::HasTile(shape) &&
         conv1x1_forward::SharedBytes(shape) <= shape.max_shared_bytes;
}

int Conv1x1ForwardBlocks(const Conv1x1ForwardShape& shape) {
  return conv1x1_forward::WithTile(shape, [&](auto tile, auto /*norms*/) {
    return static_cast<int>(conv1x1_forward::GridOf<decltype(tile)>(shape).y);
  });
}

void RunConv1x1Forward(const Conv1x1ForwardShape& shape, const Conv1x1Forward& call,
                       CUstream_st* stream) {
  DDL_CHECK(HasConv1x1Forward(shape));
  const NormsForward& front = call.front;
  const batch_norm::Statistics first =
      batch_norm::FindStatistics(shape.src, front.first.parameters, front.first.src, front.of_batch,
                                 front.saved, call.scratch, stream);
  batch_norm::Statistics second = {};
  if (shape.norms == NormsInFront::kDualNorm) {
    // Its means go where the first one's partial sums are no longer needed.
    second = batch_norm::FindStatistics(
        shape.src, front.second.parameters, front.second.src, front.of_batch,
        front.saved == nullptr ? nullptr : front.saved + NormSavedFloats(shape.src),
        call.scratch + 2 * shape.src.padded, stream);
  }
  conv1x1_forward::WithTile(shape, [&](auto tile, auto norms) {
    using Of = decltype(tile);
    LaunchWithShared(sizeof(typename Of::Shared), conv1x1_forward::ForwardKernel<Of, norms>,
                     conv1x1_forward::GridOf<Of>(shape), rows_product::kBlockThreads, stream, call,
                     first, second, static_cast<int>(shape.src.pixels), shape.filters);
  });
}

}  // namespace trainer
