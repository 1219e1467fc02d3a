// SPDX-License-Identifier: Apache-2.0

#include <type_traits>

#include "trainer/backend/cuda/bottleneck/conv1_backward.h"
#include "trainer/backend/cuda/bottleneck/rows_product.cuh"

namespace trainer {
namespace conv1_backward {
namespace {

constexpr int kMaxFilters = 256;
constexpr int kMaxFiltersOfQuadPairs = 128;

enum class Kind { kNorm, kDualNorm, kNormOfStride2 };

// Of images with a stride of 2.
struct Images {
  int height, width;

  // The row of the residual that belongs to a pixel; negative: none.
  __device__ int ResidualOf(int pixel) const {
    const int line = pixel / width;  // of all images
    const int column = pixel - line * width;
    const int image = line / height;
    const int row = line - image * height;
    if (row % 2 != 0 || column % 2 != 0) return -1;
    return (image * ((height + 1) / 2) + row / 2) * ((width + 1) / 2) + column / 2;
  }
};

// What is behind the product.
template <typename Of, Kind kind>
class EndBelow {
  using T = typename Of::T;
  static constexpr bool kIsDual = kind == Kind::kDualNorm;

 public:
  // `second_means`: shared memory of Of::kColumns floats where it is dual, since registers do not
  // suffice.  The block is to wait before Use.
  __device__ EndBelow(const Conv1Backward& call, const Images& images, int pixels, int channels,
                      float* second_means)
      : call_(call),
        images_(images),
        pixels_(pixels),
        channels_(channels),
        channel_(rows_product::OwnColumn<Of>()) {
    LoadMeans(call.first, mean_);
    if constexpr (kIsDual) {
      second_means_ = second_means + rows_product::Thread() % Of::kThreadsAcross * 8;
      float means[8];
      LoadMeans(call.second, means);
      for (int i = 0; rows_product::Thread() < Of::kThreadsAcross && i < 8; ++i) {
        second_means_[i] = means[i];
      }
    }
  }

  __device__ void Load(int e, int pixel) {
    if (pixel >= pixels_ || channel_ >= channels_) return;
    const std::int64_t at = ElementOf(pixel);
    if constexpr (kind == Kind::kNormOfStride2) {
      const int row = images_.ResidualOf(pixel);
      const T* rows = static_cast<const T*>(call_.residual);
      residual_[e] = row < 0 ? Eight<T>{} : LoadEight(rows + ElementOf(row));
    } else {
      residual_[e] = LoadEight(static_cast<const T*>(call_.residual) + at);
    }
    z_[e] = LoadEight(static_cast<const T*>(call_.first.z) + at);
    if constexpr (kIsDual) second_z_[e] = LoadEight(static_cast<const T*>(call_.second.z) + at);
    passes_[e] = call_.mask[at / 8];
  }

  __device__ void Use(int e, int pixel, const float (&product)[8]) {
    if (pixel >= pixels_ || channel_ >= channels_) return;
    float gradient[8];
    Widen(residual_[e], gradient);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      gradient[i] = (passes_[e] >> i & 1U) != 0 ? gradient[i] + product[i] : 0.0F;
    }
    const Eight<T> stored = Narrow<T>(gradient);
    StoreEight(stored, static_cast<T*>(call_.diff_src) + ElementOf(pixel));
    Widen(stored, gradient);  // what the other passes read
    float z[8];
    Widen(z_[e], z);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      sum_[i] += gradient[i];
      products_[i] += gradient[i] * (z[i] - mean_[i]);
    }
    if constexpr (kIsDual) {
      Widen(second_z_[e], z);
#pragma unroll
      for (int i = 0; i < 8; ++i) second_products_[i] += gradient[i] * (z[i] - second_means_[i]);
    }
  }

  // `shared`: of the product, which is done.
  __device__ void StorePartialSums(rows_product::Shared<Of>& shared) {
    StoreOf(call_.first, products_, shared);
    if constexpr (kIsDual) StoreOf(call_.second, second_products_, shared);
  }

 private:
  __device__ std::int64_t ElementOf(int row) const {
    return static_cast<std::int64_t>(row) * channels_ + channel_;
  }
  __device__ void LoadMeans(const Conv1Backward::Norm& norm, float (&means)[8]) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) means[i] = channel_ < channels_ ? norm.saved[channel_ + i] : 0.0F;
  }
  __device__ void StoreOf(const Conv1Backward::Norm& norm, float (&products)[8],
                          rows_product::Shared<Of>& shared) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      products[i] *= channel_ < channels_ ? norm.saved[channels_ + channel_ + i] : 0.0F;
    }
    float* to = norm.partial + static_cast<std::int64_t>(blockIdx.y) * 2 * channels_;
    rows_product::SumOverRows<Of>(sum_, channels_, shared, to);
    rows_product::SumOverRows<Of>(products, channels_, shared, to + channels_);
  }

  const Conv1Backward& call_;
  const Images& images_;
  const int pixels_, channels_, channel_;
  float* second_means_ = nullptr;
  Eight<T> residual_[Of::kRows] = {};
  Eight<T> z_[Of::kRows] = {};
  Eight<T> second_z_[kIsDual ? Of::kRows : 1] = {};
  unsigned passes_[Of::kRows] = {};
  float mean_[8];
  float sum_[8] = {};
  float products_[8] = {};
  float second_products_[8] = {};
};

template <typename Of, Kind kind>
__global__ void __launch_bounds__(rows_product::kBlockThreads, 1)
    BackwardKernel(Conv1Backward call, Images images, int pixels, int filters, int channels) {
  using T = typename Of::T;
  auto& shared = *reinterpret_cast<rows_product::Shared<Of>*>(GivenShared());
  alignas(16) __shared__ float second_means[kind == Kind::kDualNorm ? Of::kColumns : 1];
  EndBelow<Of, kind> end(call, images, pixels, channels, second_means);
  const rows_product::Product<T> product = {static_cast<const T*>(call.filter), pixels, filters,
                                            channels};
  rows_product::SourceInMemory<Of> front(static_cast<const T*>(call.gradient), product);
  rows_product::MultiplyRows<Of>(product, shared, front, end);
  end.StorePartialSums(shared);
}

// As many columns as registers have room for, 256 at most.
template <typename T, TensorCores cores, int depth>
using Tile = rows_product::Tile<T, cores, depth,
                                depth == (cores == TensorCores::kWholeWarp ? 256 : 128) ? 128 : 256,
                                Major::kMN>;

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
  return call(Tile<T, TensorCores::kWholeWarp, kMaxFilters>());
}
// Calls call(tile), whose type is that of a product of so many filters.
template <typename Call>
auto WithTile(const Conv1BackwardShape& shape, const Call& call) {
  if (shape.dtype == DType::kFloat16) return WithTileOf<__half>(shape, call);
  return WithTileOf<__nv_bfloat16>(shape, call);
}

template <typename Of>
dim3 GridOf(const Conv1BackwardShape& shape) {
  return rows_product::GridOf<Of>(shape.pixels, shape.channels, shape.sms);
}

template <typename Of>
void Queue(const Conv1BackwardShape& shape, const Conv1Backward& call, CUstream_st* stream) {
  const auto queue = [&](auto kind) {
    LaunchWithShared(sizeof(rows_product::Shared<Of>), BackwardKernel<Of, kind>, GridOf<Of>(shape),
                     rows_product::kBlockThreads, stream, call, Images{shape.height, shape.width},
                     static_cast<int>(shape.pixels), shape.filters, shape.channels);
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
  if (shape.compute_capability >= 8) return shape.filters <= conv1_backward::kMaxFilters;
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
  conv1_backward::WithTile(
      shape, [&](auto tile) { conv1_backward::Queue<decltype(tile)>(shape, call, stream); });
}

}  // namespace trainer
