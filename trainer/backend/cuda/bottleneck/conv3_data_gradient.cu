// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/bottleneck/conv3_data_gradient.h"
#include "trainer/backend/cuda/bottleneck/data_gradient_end.cuh"
#include "trainer/backend/cuda/bottleneck/norm_backward_front.cuh"
#include "trainer/backend/cuda/bottleneck/rows_product.cuh"
#include "trainer/backend/cuda/bottleneck/streamed_product.cuh"

namespace trainer {
namespace conv3_data_gradient {
namespace {

// Fewer would be another kernel, with all of the filter in registers.
constexpr int kMinFilters = 257;
// Where the filter stays in the multiprocessor.
constexpr int kMaxKeptFilters = 512;
constexpr int kMaxKeptChannels = 128;
// Where it comes in chunks.
constexpr int kMaxFilters = 1024;
constexpr int kMaxChannels = 256;

// All channels are in one thread block: what is in front of them is done once.
template <typename T>
using KeptTile =
    rows_product::Tile<T, TensorCores::kWholeWarp, kMaxKeptFilters, kMaxKeptChannels, Major::kMN>;
template <typename T>
using StreamedTile = streamed_product::Tile<T, kMaxFilters, Major::kMN>;

template <typename Of>
using Front = rows_product::SourceBehindNorm<Of>;
template <typename Of>
using End = data_gradient_end::EndBelow<Of, data_gradient_end::Kind::kNormWithoutResidual>;

template <typename Of>
__global__ void __launch_bounds__(rows_product::kBlockThreads, 1)
    DataGradientKernel(Conv1Backward call, int pixels, int filters, int channels,
                       NormBackwardFront norm) {
  SynchronizeGridDependencies();
  using T = typename Of::T;
  auto& shared = *reinterpret_cast<typename Of::Shared*>(GivenShared());
  __shared__ typename Front<Of>::Coefficients coefficients;
  alignas(16) __shared__ float means[End<Of>::kMeans];
  const data_gradient_end::Images images = {};
  End<Of> end(call, images, pixels, channels, means);
  const rows_product::Product<T> product = {static_cast<const T*>(call.filter), pixels, filters,
                                            channels};
  Front<Of> front(static_cast<const T*>(call.gradient), norm, product, coefficients);
  MultiplyRows(product, shared, front, end);  // of either kind of tile
  end.StorePartialSums();
}

// Calls call(tile), whose type is that of a product of so many filters and channels.
template <typename Call>
auto WithTile(const Conv3DataGradientShape& shape, const Call& call) {
  const auto with_type = [&](auto zero) {
    using T = decltype(zero);
    const bool is_kept = shape.filters <= kMaxKeptFilters && shape.channels <= kMaxKeptChannels;
    return is_kept ? call(KeptTile<T>()) : call(StreamedTile<T>());
  };
  if (shape.dtype == DType::kFloat16) return with_type(__half{});
  return with_type(__nv_bfloat16{});
}

// Of a thread block, all in all.
std::size_t SharedBytes(const Conv3DataGradientShape& shape) {
  return WithTile(shape, [](auto tile) {
    using Of = decltype(tile);
    constexpr std::size_t kMeansBytes = sizeof(float) * End<Of>::kMeans;
    constexpr std::size_t kAlignment = 16;
    return sizeof(typename Of::Shared) + sizeof(typename Front<Of>::Coefficients) +
           (kMeansBytes + kAlignment - 1) / kAlignment * kAlignment;
  });
}

template <typename Of>
dim3 GridOf(const Conv3DataGradientShape& shape) {
  return rows_product::GridOf<Of>(shape.pixels, shape.channels, shape.sms);
}

}  // namespace
}  // namespace conv3_data_gradient

bool HasConv3DataGradient(const Conv3DataGradientShape& shape) {
  using namespace conv3_data_gradient;
  return (shape.dtype == DType::kFloat16 || shape.dtype == DType::kBFloat16) &&
         shape.compute_capability >= 8 && shape.filters >= kMinFilters &&
         shape.filters <= kMaxFilters && shape.channels <= kMaxChannels &&
         SharedBytes(shape) <= shape.max_shared_bytes;
}

int Conv3DataGradientBlocks(const Conv3DataGradientShape& shape) {
  return conv3_data_gradient::WithTile(shape, [&](auto tile) {
    return static_cast<int>(conv3_data_gradient::GridOf<decltype(tile)>(shape).y);
  });
}

void RunConv3DataGradient(const Conv3DataGradientShape& shape, const Conv3DataGradient& call,
                          CUstream_st* stream) {
  DDL_CHECK(HasConv3DataGradient(shape));
  const Conv1Backward behind = {.gradient = call.gradient,
                                .filter = call.filter,
                                .residual = nullptr,
                                .diff_src = call.diff_src,
                                .mask = call.mask,
                                .first = {call.before, call.saved, call.partial},
                                .second = {}};
  conv3_data_gradient::WithTile(shape, [&](auto tile) {
    using Of = decltype(tile);
    LaunchWithShared(sizeof(typename Of::Shared), conv3_data_gradient::DataGradientKernel<Of>,
                     conv3_data_gradient::GridOf<Of>(shape), rows_product::kBlockThreads, stream,
                     behind, static_cast<int>(shape.pixels), shape.filters, shape.channels,
                     call.norm);
  });
}

}  // namespace trainer
