// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
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
template <typename T, typename Of, Kind kind>
class EndBelow {
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
  template <typename Shared>
  __device__ void StorePartialSums(Shared& shared) {
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
  template <typename Shared>
  __device__ void StoreOf(const Conv1Backward::Norm& norm, float (&products)[8], Shared& shared) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      products[i] *= channel_ < channels_ ? norm.saved[channels_ + channel_ + i] : 0.0F;
    }
    float* to = norm.partial + static_cast<std::int64_t>(blockIdx.y) * 2 * channels_;
    rows_product::SumOverRows(sum_, channels_, shared, to);
    rows_product::SumOverRows(products, channels_, shared, to + channels_);
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

template <typename T, TensorCores cores, int depth, Kind kind>
__global__ void __launch_bounds__(rows_product::kBlockThreads, 1)
    BackwardKernel(Conv1Backward call, Images images, int pixels, int filters, int channels) {
  auto& shared = *reinterpret_cast<rows_product::Shared<T, cores, depth>*>(GivenShared());
  using Of = rows_product::Tile<cores, depth>;
  alignas(16) __shared__ float second_means[kind == Kind::kDualNorm ? Of::kColumns : 1];
  EndBelow<T, Of, kind> end(call, images, pixels, channels, second_means);
  const rows_product::Operands<T> operands = {static_cast<const T*>(call.gradient),
                                              static_cast<const T*>(call.filter), pixels, filters,
                                              channels};
  rows_product::MultiplyRows(operands, shared, end);
  end.StorePartialSums(shared);
}

// Calls call(depth, cores), constants, for a product of so many filters.
template <typename Call>
auto WithTile(const Conv1BackwardShape& shape, const Call& call) {
  using WholeWarp = std::integral_constant<TensorCores, TensorCores::kWholeWarp>;
  using QuadPairs = std::integral_constant<TensorCores, TensorCores::kQuadPairs>;
  using std::integral_constant;
  if (TensorCoresOf(shape.compute_capability) == TensorCores::kQuadPairs) {
    if (shape.filters <= 64) return call(integral_constant<int, 64>(), QuadPairs());
    return call(integral_constant<int, kMaxFiltersOfQuadPairs>(), QuadPairs());
  }
  if (shape.filters <= 64) return call(integral_constant<int, 64>(), WholeWarp());
  if (shape.filters <= 128) return call(integral_constant<int, 128>(), WholeWarp());
  return call(integral_constant<int, kMaxFilters>(), WholeWarp());
}

// Across the columns and down the pixels: all blocks run from the beginning, one on each
// multiprocessor.
struct Grid {
  int across = 0, down = 0;
};
Grid GridOf(const Conv1BackwardShape& shape) {
  DDL_CHECK(shape.pixels > 0 && shape.pixels < std::int64_t{1} << 30);
  return WithTile(shape, [&](auto depth, auto cores) {
    using Of = rows_product::Tile<cores, depth>;
    const int across = (shape.channels + Of::kColumns - 1) / Of::kColumns;
    const std::int64_t tiles = (shape.pixels + Of::kPixels - 1) / Of::kPixels;
    const std::int64_t down = std::max(shape.sms / across, 1);
    return Grid{across, static_cast<int>(std::min(tiles, down))};
  });
}

template <typename T, TensorCores cores, int depth>
void Queue(const Conv1BackwardShape& shape, const Conv1Backward& call, CUstream_st* stream) {
  const Grid grid = GridOf(shape);
  const auto queue = [&](auto kind) {
    LaunchWithShared(sizeof(rows_product::Shared<T, cores, depth>),
                     BackwardKernel<T, cores, depth, kind>,
                     dim3(static_cast<unsigned>(grid.across), static_cast<unsigned>(grid.down)),
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
  return conv1_backward::GridOf(shape).down;
}

void RunConv1Backward(const Conv1BackwardShape& shape, const Conv1Backward& call,
                      CUstream_st* stream) {
  DDL_CHECK(HasConv1Backward(shape));
  conv1_backward::WithTile(shape, [&](auto depth, auto cores) {
    if (shape.dtype == DType::kFloat16) {
      conv1_backward::Queue<__half, cores, depth>(shape, call, stream);
    } else if constexpr (cores == TensorCores::kWholeWarp) {
      conv1_backward::Queue<__nv_bfloat16, cores, depth>(shape, call, stream);
    }
  });
}

}  // namespace trainer
