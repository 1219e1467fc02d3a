// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/bottleneck/conv3_data_gradient.h"
#include "trainer/backend/cuda/bottleneck/data_gradient_end.cuh"
#include "trainer/backend/cuda/bottleneck/norm_backward_front.cuh"
#include "trainer/backend/cuda/bottleneck/rows_product.cuh"

namespace trainer {
namespace conv3_data_gradient {
namespace {

constexpr int kMaxFilters = 512;
constexpr int kMaxChannels = 128;
// Fewer would be another kernel, with all of the filter in registers.
constexpr int kMinFilters = 257;

// All channels are in one thread block: what is in front of them is done once.
template <typename T>
using Tile = rows_product::Tile<T, TensorCores::kWholeWarp, kMaxFilters, kMaxChannels, Major::kMN>;

template <typename Of>
__global__ void __launch_bounds__(rows_product::kBlockThreads, 1)
    DataGradientKernel(Conv1Backward call, int pixels, int filters, int channels,
                       NormBackwardFront norm) {
  using T = typename Of::T;
  using Front = rows_product::SourceBehindNorm<Of>;
  using End = data_gradient_end::EndBelow<Of, data_gradient_end::Kind::kNormWithoutResidual>;
  auto& shared = *reinterpret_cast<rows_product::Shared<Of>*>(GivenShared());
  __shared__ typename Front::Coefficients coefficients;
  alignas(16) __shared__ float means[End::kMeans];
  const data_gradient_end::Images images = {};
  End end(call, images, pixels, channels, means);
  const rows_product::Product<T> product = {static_cast<const T*>(call.filter), pixels, filters,
                                            channels};
  Front front(static_cast<const T*>(call.gradient), norm, product, coefficients);
  rows_product::MultiplyRows<Of>(product, shared, front, end);
  end.StorePartialSums(shared);
}

template <typename T>
constexpr std::size_t kSharedBytes =
    sizeof(rows_product::Shared<Tile<T>>) +
    sizeof(typename rows_product::SourceBehindNorm<Tile<T>>::Coefficients) +
    16;  // and an alignment

template <typename T>
dim3 GridOf(const Conv3DataGradientShape& shape) {
  return rows_product::GridOf<Tile<T>>(shape.pixels, shape.channels, shape.sms);
}

template <typename T>
void Queue(const Conv3DataGradientShape& shape, const Conv3DataGradient& call,
           CUstream_st* stream) {
  const Conv1Backward behind = {.gradient = call.gradient,
                                .filter = call.filter,
                                .residual = nullptr,
                                .diff_src = call.diff_src,
                                .mask = call.mask,
                                .first = {call.before, call.saved, call.partial},
                                .second = {}};
  LaunchWithShared(sizeof(rows_product::Shared<Tile<T>>), DataGradientKernel<Tile<T>>,
                   GridOf<T>(shape), rows_product::kBlockThreads, stream, behind,
                   static_cast<int>(shape.pixels), shape.filters, shape.channels, call.norm);
}

}  // namespace
}  // namespace conv3_data_gradient

bool HasConv3DataGradient(const Conv3DataGradientShape& shape) {
  using namespace conv3_data_gradient;
  return (shape.dtype == DType::kFloat16 || shape.dtype == DType::kBFloat16) &&
         shape.compute_capability >= 8 && shape.filters >= kMinFilters &&
         shape.filters <= kMaxFilters && shape.channels <= kMaxChannels &&
         kSharedBytes<__half> <= shape.max_shared_bytes;
}

int Conv3DataGradientBlocks(const Conv3DataGradientShape& shape) {
  return static_cast<int>(conv3_data_gradient::GridOf<__half>(shape).y);
}

void RunConv3DataGradient(const Conv3DataGradientShape& shape, const Conv3DataGradient& call,
                          CUstream_st* stream) {
  DDL_CHECK(HasConv3DataGradient(shape));
  if (shape.dtype == DType::kFloat16) {
    conv3_data_gradient::Queue<__half>(shape, call, stream);
  } else {
    conv3_data_gradient::Queue<__nv_bfloat16>(shape, call, stream);
  }
}

}  // namespace trainer
