// SPDX-License-Identifier: Apache-2.0
//
// What is behind the product of rows_product.cuh where that is a data gradient which goes on
// through a ReLU, and is added up for the batch norms before that.

#pragma once

#include "trainer/backend/cuda/bottleneck/conv1_backward.h"
#include "trainer/backend/cuda/bottleneck/rows_product.cuh"

namespace trainer {
namespace data_gradient_end {

// How many batch norms are before the ReLU, and which residual is added.
enum class Kind { kNorm, kDualNorm, kNormOfStride2, kNormWithoutResidual };

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
  // `means`: shared memory of kMeans floats, where registers do not suffice.  The block is to wait
  // before Use.
  static constexpr int kMeans = kIsDual ? 2 * Of::kColumns : 1;
  __device__ EndBelow(const Conv1Backward& call, const Images& images, int pixels, int channels,
                      float* means)
      : call_(call),
        images_(images),
        pixels_(pixels),
        channels_(channels),
        channel_(rows_product::OwnColumn<Of>()) {
    if constexpr (kIsDual) {
      shared_means_ = means + rows_product::Thread() % Of::kThreadsAcross * 8;
      ShareMeans(call.first, shared_means_);
      ShareMeans(call.second, shared_means_ + Of::kColumns);
    } else {
      LoadMeans(call.first, mean_);
    }
  }

  __device__ void Load(int e, int pixel) {
    if (pixel >= pixels_ || channel_ >= channels_) return;
    const std::int64_t at = ElementOf(pixel);
    if constexpr (kind == Kind::kNormOfStride2) {
      const int row = images_.ResidualOf(pixel);
      const T* rows = static_cast<const T*>(call_.residual);
      residual_[e] = row < 0 ? Eight<T>{} : LoadEight(rows + ElementOf(row));
    } else if constexpr (kind != Kind::kNormWithoutResidual) {
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
      products_[i] += gradient[i] * (z[i] - (kIsDual ? shared_means_[i] : mean_[i]));
    }
    if constexpr (kIsDual) {
      Widen(second_z_[e], z);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        second_products_[i] += gradient[i] * (z[i] - shared_means_[Of::kColumns + i]);
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
  __device__ void ShareMeans(const Conv1Backward::Norm& norm, float* to) const {
    if (rows_product::Thread() >= Of::kThreadsAcross) return;
    float means[8];
    LoadMeans(norm, means);
    for (int i = 0; i < 8; ++i) to[i] = means[i];
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
  float* shared_means_ = nullptr;
  Eight<T> residual_[Of::kRows] = {};
  Eight<T> z_[Of::kRows] = {};
  Eight<T> second_z_[kIsDual ? Of::kRows : 1] = {};
  unsigned passes_[Of::kRows] = {};
  float mean_[8] = {};
  float sum_[8] = {};
  float products_[8] = {};
  float second_products_[8] = {};
};

}  // namespace data_gradient_end
}  // namespace trainer
