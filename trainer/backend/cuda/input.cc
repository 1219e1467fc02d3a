// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/cuda_ops.h"
#include "trainer/backend/cuda/runtime/copy_kernels.h"
#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

class CudaInputTransform final : public InputTransform {
 public:
  CudaInputTransform(const Shape& images, DType dtype) : dst_(CudaImages(images, dtype)) {
    DDL_CHECK(images.rank() == 4 && images[1] == 3);
    call_.samples = images[0];
    call_.height = images[2];
    call_.width = images[3];
    for (int c = 0; c < 3; ++c) {
      call_.mean[c] = kMean[c];
      call_.factor[c] = 1 / kDeviation[c];
    }
  }

  const TensorDesc& dst() const override { return dst_; }

  void Forward(const std::uint8_t* pixels, const std::uint8_t* mirror, const float* lambda,
               const Tensor& dst, Stream& stream) override {
    PixelsCall call = call_;
    call.pixels = pixels;
    call.mirror = mirror;
    call.lambda = lambda;
    TransformPixels(call, dst_.dtype, dst.data, HandleOf(stream));
  }

 private:
  TensorDesc dst_;
  PixelsCall call_;
};

}  // namespace

std::unique_ptr<InputTransform> MakeCudaInputTransform(const Shape& images, DType dtype) {
  return std::make_unique<CudaInputTransform>(images, dtype);
}

}  // namespace trainer
