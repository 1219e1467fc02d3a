// SPDX-License-Identifier: Apache-2.0

#include <type_traits>

#include "trainer/backend/cuda/bottleneck/conv1_backward.h"
#include "trainer/backend/cuda/bottleneck/data_gradient_end.cuh"
#include "trainer/backend/cuda/bottleneck/norm_backward_front.cuh"
#include "trainer/backend/cuda/bottleneck/rows_product.cuh"
#include "trainer/backend/cuda/bottleneck/streamed_product.cuh"

namespace trainer {
namespace conv1_backward {
namespace {

// Where registers have room for the filter.
constexpr int kMaxKeptFilters = 256;
constexpr int kMaxFiltersOfQuadPairs = 128;
// Where it comes in chunks.
constexpr int kMaxFilters = 512;
// With the batch norm in front, and thread blocks that have columns.
constexpr int kMaxFiltersWithNorm = 128;
constexpr int kMaxAcrossWithNorm = 2;

using data_gradient_end::EndBelow;
using data_gradient_end::Images;
using data_gradient_end::Kind;

struct NoNorm {};

// Norm: NormBackwardFront, or NoNorm: more in a call takes registers.
template <typename Of, Kind kind, typename Norm>
__global__ void __launch_bounds__(rows_product::kBlockThreads, 1)
    BackwardKernel(Conv1Backward call, Images images, int pixels, int filters, int channels,
                   Norm norm) {
  SynchronizeGridDependencies();
  using T = typename Of::T;
  auto& shared = *reinterpret_cast<typename Of::Shared*>(GivenShared());
  alignas(16) __shared__ float means[EndBelow<Of, kind>::kMeans];
  EndBelow<Of, kind> end(call, images, pixels, channels, means);
  const rows_product::Product<T> product = {static_cast<const T*>(call.filter), pixels, filters,
                                            channels};
  if constexpr (std::is_same_v<Norm, NoNorm>) {
    rows_product::SourceInMemory<Of> front(static_cast<const T*>(call.gradient), product);
    MultiplyRows(product, shared, front, end);  // of either kind of tile
  } else {
    using Front = rows_product::SourceBehindNorm<Of>;
    __shared__ typename Front::Coefficients coefficients;
    Front front(static_cast<const T*>(call.gradient), norm, product, coefficients);
    rows_product::MultiplyRows(product, shared, front, end);
  }
  end.StorePartialSums();
}

// Where the filter stays in registers, as many columns as they have room for, 256 at most.
template <typename T, TensorCores cores, int depth>
using Tile = rows_product::Tile<T, cores, depth,
                                depth == (cores == TensorCores::kWholeWarp ? 256 : 128) ? 128 : 256,
                                Major::kMN>;
template <typename T>
using StreamedTile = streamed_product::Tile<T, kMaxFilters, Major::kMN>;

template <typename T, typename Call>
auto WithTileOf(const Conv1BackwardShape& shape, const Call& call) {
  if constexpr (std::is_same_v<T, __half>) {
    if (TensorCoresOf(shape.compute_capability) == TensorCores::kQuadPairs) {
      if (shape.filters <= 64) return call(Tile<T, TensorCores::kQuadPairs, 64>());
      return call(Tile<T, TensorCores::kQuadPairs, kMaxFiltersOfQuadPairs>());
    }
  }
  if (shape.filters <= 64) return call(Tile<T, TensorCores::kWholeWarp, 64>());
  if (shape.filters <= 128) return call(Tile<T, TensorCores::kWholeWarp, 128>());
  if (shape.filters <= kMaxKeptFilters) {
    return call(Tile<T, TensorCores::kWholeWarp, kMaxKeptFilters>());
  }
  return call(StreamedTile<T>());
}
// Calls call(tile), whose type is that of a product of so many filters.
template <typename Call>
auto WithTile(const Conv1BackwardShape& shape, const Call& call) {
  if (shape.dtype == DType::kFloat16) return WithTileOf<__half>(shape, call);
  return WithTileOf<__nv_bfloat16>(shape, call);
}

// Of a thread block where the filter comes in chunks, all in all, at most.
template <typename T>
constexpr std::size_t SharedBytes() {
  using Of = StreamedTile<T>;
  return sizeof(typename Of::Shared) + sizeof(float) * EndBelow<Of, Kind::kDualNorm>::kMeans;
}

template <typename Of>
dim3 GridOf(const Conv1BackwardShape& shape) {
  return rows_product::GridOf<Of>(shape.pixels, shape.channels, shape.sms);
}

template <typename Of, typename Norm>
void Queue(const Conv1BackwardShape& shape, const Conv1Backward& call, const Norm& norm,
           CUstream_st* stream) {
  const auto queue = [&](auto kind) {
    LaunchWithShared(sizeof(typename Of::Shared), BackwardKernel<Of, kind, Norm>, GridOf<Of>(shape),
                     rows_product::kBlockThreads, stream, call, Images{shape.height, shape.width},
                     static_cast<int>(shape.pixels), shape.filters, shape.channels, norm);
  };
  using std::integral_constant;
  if (shape.is_dual) return queue(integral_constant<Kind, Kind::kDualNorm>());
  if (shape.stride == 2) return queue(integral_constant<Kind, Kind::kNormOfStride2>());
  queue(integral_constant<Kind, Kind::kNorm>());
}

}  // namespace
}  // namespace conv1_backward

bool HasConv1Backward(const Conv1BackwardShape& shape) {
  if (shape.dtype != DType::kFloat16 && shape.dtype != DType::kBFloat16) return false;
  if (shape.stride != 1 && (shape.stride != 2 || shape.is_dual)) return false;
  if (shape.compute_capability >= 8) {
    using conv1_backward::SharedBytes;
    static_assert(SharedBytes<__half>() == SharedBytes<__nv_bfloat16>());
    return shape.filters <= conv1_backward::kMaxKeptFilters ||
           (shape.filters <= conv1_backward::kMaxFilters &&
            SharedBytes<__half>() <= shape.max_shared_bytes);
  }
  return shape.dtype == DType::kFloat16 && shape.compute_capability == 7 &&
         shape.filters <= conv1_backward::kMaxFiltersOfQuadPairs;
}

int Conv1BackwardBlocks(const Conv1BackwardShape& shape) {
  return conv1_backward::WithTile(shape, [&](auto tile) {
    return static_cast<int>(conv1_backward::GridOf<decltype(tile)>(shape).y);
  });
}

void RunConv1Backward(const Conv1BackwardShape& shape, const Conv1Backward& call,
                      CUstream_st* stream) {
  DDL_CHECK(HasConv1Backward(shape));
  conv1_backward::WithTile(shape, [&](auto tile) {
    conv1_backward::Queue<decltype(tile)>(shape, call, conv1_backward::NoNorm(), stream);
  });
}

bool HasConv1BackwardWithNorm(const Conv1BackwardShape& shape) {
  return HasConv1Backward(shape) && shape.filters <= conv1_backward::kMaxFiltersWithNorm &&
         conv1_backward::WithTile(shape, [&](auto tile) {
           return shape.channels <= conv1_backward::kMaxAcrossWithNorm * decltype(tile)::kColumns;
         });
}

void RunConv1BackwardWithNorm(const Conv1BackwardShape& shape, const Conv1Backward& call,
                              const NormBackwardFront& norm, CUstream_st* stream) {
  DDL_CHECK(HasConv1BackwardWithNorm(shape));
  conv1_backward::WithTile(shape, [&](auto tile) {
    using Of = decltype(tile);
    if constexpr (Of::kDepth <= conv1_backward::kMaxFiltersWithNorm) {
      conv1_backward::Queue<Of>(shape, call, norm, stream);
    }
  });
}

}  // namespace trainer
