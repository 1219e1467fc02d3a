// SPDX-License-Identifier: Apache-2.0

#include <limits>

#include "trainer/backend/reference/reference_ops.h"

namespace trainer {
namespace {

using Index = std::int64_t;

// `saved` is, for each value of dst, where in its plane of src it came from: h * W + w as int32.
class ReferenceMaxPool final : public MaxPool {
 public:
  explicit ReferenceMaxPool(const MaxPoolSpec& spec) : spec_(spec) {
    CheckRowMajor(spec.src, 4);
    // Every window then meets the image.
    DDL_CHECK(spec.stride > 0 && spec.padding >= 0 && spec.kernel > spec.padding);
    const Shape& src = spec.src.shape;
    DDL_CHECK(src[2] + 2 * spec.padding >= spec.kernel && src[3] + 2 * spec.padding >= spec.kernel);
    DDL_CHECK(src[2] * src[3] <= std::numeric_limits<std::int32_t>::max());
    dst_ = RowMajor({src[0], src[1], (src[2] + 2 * spec.padding - spec.kernel) / spec.stride + 1,
                     (src[3] + 2 * spec.padding - spec.kernel) / spec.stride + 1},
                    DType::kFloat32);
  }

  const TensorDesc& dst() const override { return dst_; }
  std::size_t saved_bytes() const override {
    return static_cast<std::size_t>(dst_.shape.elements()) * sizeof(std::int32_t);
  }

  void Forward(const Tensor& src_tensor, const Tensor& dst_tensor, void* saved,
               Stream& /*stream*/) override {
    const TensorView src(src_tensor);
    const TensorView dst(dst_tensor);
    auto* origin = static_cast<std::int32_t*>(saved);
    ForEach(dst_.shape, [&](Index n, Index c, Index p, Index q) {
      Index best = -1;
      float largest = 0;
      for (Index r = 0; r < spec_.kernel; ++r) {
        for (Index s = 0; s < spec_.kernel; ++s) {
          const Index h = p * spec_.stride - spec_.padding + r;
          const Index w = q * spec_.stride - spec_.padding + s;
          if (h < 0 || h >= spec_.src.shape[2] || w < 0 || w >= spec_.src.shape[3]) continue;
          if (best >= 0 && !(src(n, c, h, w) > largest)) continue;
          best = h * spec_.src.shape[3] + w;
          largest = src(n, c, h, w);
        }
      }
      dst(n, c, p, q) = largest;
      *origin++ = static_cast<std::int32_t>(best);
    });
  }

  void Backward(const Tensor& diff_dst_tensor, const void* saved, const Tensor& diff_src_tensor,
                Stream& /*stream*/) override {
    const TensorView diff_dst(diff_dst_tensor);
    const TensorView diff_src(diff_src_tensor);
    const auto* origin = static_cast<const std::int32_t*>(saved);
    ForEach(spec_.src.shape, [&](Index n, Index c, Index h, Index w) { diff_src(n, c, h, w) = 0; });
    ForEach(dst_.shape, [&](Index n, Index c, Index p, Index q) {
      const Index width = spec_.src.shape[3];
      diff_src(n, c, *origin / width, *origin % width) += diff_dst(n, c, p, q);
      ++origin;
    });
  }

 private:
  MaxPoolSpec spec_;
  TensorDesc dst_;
};

class ReferenceGlobalAveragePool final : public GlobalAveragePool {
 public:
  explicit ReferenceGlobalAveragePool(const TensorDesc& src) : src_(src) {
    CheckRowMajor(src, 4);
    dst_ = RowMajor({src.shape[0], src.shape[1]}, DType::kFloat32);
  }

  const TensorDesc& dst() const override { return dst_; }

  void Forward(const Tensor& src, const Tensor& dst, Stream& /*stream*/) override {
    const Index plane = src_.shape[2] * src_.shape[3];
    for (Index i = 0; i < dst_.shape.elements(); ++i) {
      double sum = 0;
      for (Index j = 0; j < plane; ++j) sum += src.As<float>()[i * plane + j];
      dst.As<float>()[i] = static_cast<float>(sum / static_cast<double>(plane));
    }
  }

  void Backward(const Tensor& diff_dst, const Tensor& diff_src, Stream& /*stream*/) override {
    const Index plane = src_.shape[2] * src_.shape[3];
    for (Index i = 0; i < src_.shape.elements(); ++i) {
      diff_src.As<float>()[i] = diff_dst.As<float>()[i / plane] / static_cast<float>(plane);
    }
  }

 private:
  TensorDesc src_;
  TensorDesc dst_;
};

}  // namespace

std::unique_ptr<MaxPool> MakeReferenceMaxPool(const MaxPoolSpec& spec) {
  return std::make_unique<ReferenceMaxPool>(spec);
}

std::unique_ptr<GlobalAveragePool> MakeReferenceGlobalAveragePool(const TensorDesc& src) {
  return std::make_unique<ReferenceGlobalAveragePool>(src);
}

}  // namespace trainer
