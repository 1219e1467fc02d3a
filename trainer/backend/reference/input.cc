// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/reference/reference_ops.h"

namespace trainer {
namespace {

class ReferenceInputTransform final : public InputTransform {
 public:
  explicit ReferenceInputTransform(const Shape& images) : dst_(RowMajor(images, DType::kFloat32)) {
    CheckRowMajor(dst_, 4);
    DDL_CHECK(images[1] == 3);
  }

  const TensorDesc& dst() const override { return dst_; }

  void Forward(const std::uint8_t* pixels, const std::uint8_t* mirror, const float* lambda,
               const Tensor& dst_tensor, Stream& /*stream*/) override {
    const std::int64_t samples = dst_.shape[0];
    const std::int64_t height = dst_.shape[2];
    const std::int64_t width = dst_.shape[3];
    const TensorView dst(dst_tensor);
    const auto x = [&](std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
      const std::int64_t column = mirror[n] != 0 ? width - 1 - w : w;
      return (pixels[((n * height + h) * width + column) * 3 + c] - kMean[c]) / kDeviation[c];
    };
    ForEach(dst_.shape, [&](std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
      const float own = lambda == nullptr ? 1 : lambda[n];
      dst(n, c, h, w) = own * x(n, c, h, w) + (1 - own) * x(samples - 1 - n, c, h, w);
    });
  }

 private:
  TensorDesc dst_;
};

}  // namespace

std::unique_ptr<InputTransform> MakeReferenceInputTransform(const Shape& images) {
  return std::make_unique<ReferenceInputTransform>(images);
}

}  // namespace trainer
