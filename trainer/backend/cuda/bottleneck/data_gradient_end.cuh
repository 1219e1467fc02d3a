// SPDX-License-Identifier: Apache-2.0
//
// What is behind a product over rows (rows_product.cuh, streamed_product.cuh) where that is a data
// gradient which goes on through a ReLU, and is added up for the batch norms before that.

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
  static constexpr bool kSharesMeans = kIsDual || Of::kKeepsSums;

 public:
  // `means`: shared memory of kMeans floats, where registers do not suffice.  The block is to wait
  // before Use.
  static constexpr int kMeans = kSharesMeans ? (kIsDual ? 2 : 1) * Of::kColumns : 1;
  __device__ EndBelow(const Conv1Backward& call, const Images& images, int pixels, int channels,
                      float* means)
      : call_(call),
        images_(images),
        pixels_(pixels),
        channels_(channels),
        channel_(rows_product::OwnColumn<Of>()) {
    if constexpr (kSharesMeans) {
      shared_means_ = means + rows_product::Thread() % Of::kThreadsAcross * 8;
      ShareMeans(call.first, shared_means_);
      if constexpr (kIsDual) ShareMeans(call.second, shared_means_ + Of::kColumns);
    } else {
      LoadMeans(call.first, mean_);
    }
  }

  __device__ void Load(int e, int pixel) {
    // What was there before is not kept, which would take registers.
    residual_[e] = z_[e] = {};
    if constexpr (kIsDual) second_z_[e] = {};
    passes_[e] = 0;
    if (pixel >= pixels_ || channel_ >= channels_) return;
    const std::int64_t at = ElementOf(pixel);
    if constexpr (kind == Kind::kNormOfStride2) {
      const int row = images_.ResidualOf(pixel);
      if (row >= 0)
        residual_[e] = LoadEight(static_cast<const T*>(call_.residual) + ElementOf(row));
    } else if constexpr (kind != Kind::kNormWithoutResidual) {
      residual_[e] = LoadEight(static_cast<const T*>(call_.residual) + at);
    }
    z_[e] = LoadEight(static_cast<const T*>(call_.first.z) + at);
    if constexpr (kIsDual) second_z_[e] = LoadEight(static_cast<const T*>(call_.second.z) + at);
    passes_[e] = call_.mask[at / 8];
  }
  // In place of Load, by whoever has read it: what Use is to find.  `passes`: a bit of each column.
  __device__ void Set(int e, const Eight<T>& residual, const Eight<T>& z, const Eight<T>& second_z,
                      unsigned passes) {
    residual_[e] = residual;
    z_[e] = z;
    if constexpr (kIsDual) second_z_[e] = second_z;
    passes_[e] = passes;
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
      products_[i] += gradient[i] * (z[i] - (kSharesMeans ? shared_means_[i] : mean_[i]));
    }
    if constexpr (kIsDual) {
      Widen(second_z_[e], z);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        second_products_[i] += gradient[i] * (z[i] - shared_means_[Of::kColumns + i]);
    }
  }

  // What was used so far, which makes room in registers.  `shared`: of the product.
  __device__ void AddUp(typename Of::Shared& shared) {
    all_ += rows_product::SumOverRows<Of>(sum_, shared);
    all_products_ += SumOf(call_.first, products_, shared);
    if constexpr (kIsDual) all_second_products_ += SumOf(call_.second, second_products_, shared);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum_[i] = products_[i] = second_products_[i] = 0;
  }
  // Of all that was added up.
  __device__ void StorePartialSums() const {
    StoreOf(call_.first, all_products_);
    if constexpr (kIsDual) StoreOf(call_.second, all_second_products_);
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
  __device__ float SumOf(const Conv1Backward::Norm& norm, float (&products)[8],
                         typename Of::Shared& shared) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      products[i] *= channel_ < channels_ ? norm.saved[channels_ + channel_ + i] : 0.0F;
    }
    return rows_product::SumOverRows<Of>(products, shared);
  }
  __device__ void StoreOf(const Conv1Backward::Norm& norm, float products) const {
    const int channel = rows_product::OwnSum<Of>();
    if (rows_product::Thread() >= Of::kColumns || channel >= channels_) return;
    float* to = norm.partial + static_cast<std::int64_t>(blockIdx.y) * 2 * channels_ + channel;
    to[0] = all_;
    to[channels_] = products;
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
  float all_ = 0;  // of the column OwnSum()
  float all_products_ = 0;
  float all_second_products_ = 0;
};

}  // namespace data_gradient_end
}  // namespace trainer
