// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/cuda_ops.h"
#include "trainer/backend/cuda/pooling_kernels.h"
#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

class CudaMaxPool final : public MaxPool {
 public:
  explicit CudaMaxPool(const MaxPoolSpec& spec) {
    DDL_CHECK(spec.src.layout == Layout::kChannelsLast);
    DDL_CHECK(spec.kernel <= 16);  // a place in the window is one byte
    const Shape& src = spec.src.shape;
    const auto out = [&](std::int64_t size) {
      return (size + 2 * spec.padding - spec.kernel) / spec.stride + 1;
    };
    shape_.samples = src[0];
    shape_.height = src[2];
    shape_.width = src[3];
    shape_.out_height = out(src[2]);
    shape_.out_width = out(src[3]);
    shape_.channels = static_cast<int>(PaddedChannels(src[1]));
    shape_.kernel = static_cast<int>(spec.kernel);
    shape_.stride = static_cast<int>(spec.stride);
    shape_.padding = static_cast<int>(spec.padding);
    shape_.dtype = spec.src.dtype;
    dst_ = CudaImages({src[0], src[1], shape_.out_height, shape_.out_width}, spec.src.dtype);
  }

  const TensorDesc& dst() const override { return dst_; }
  std::size_t saved_bytes() const override { return dst_.bytes / SizeOf(dst_.dtype); }

  void Forward(const Tensor& src, const Tensor& dst, void* saved, Stream& stream) override {
    MaxPoolForward(shape_, src.data, dst.data, static_cast<std::uint8_t*>(saved), HandleOf(stream));
  }
  void Backward(const Tensor& diff_dst, const void* saved, const Tensor& diff_src,
                Stream& stream) override {
    MaxPoolBackward(shape_, diff_dst.data, static_cast<const std::uint8_t*>(saved), diff_src.data,
                    HandleOf(stream));
  }

 private:
  PoolShape shape_;
  TensorDesc dst_;
};

class CudaGlobalAveragePool final : public GlobalAveragePool {
 public:
  explicit CudaGlobalAveragePool(const TensorDesc& src)
      : dst_(RowMajor({src.shape[0], src.shape[1]}, src.dtype)) {
    DDL_CHECK(src.layout == Layout::kChannelsLast);
    shape_.samples = src.shape[0];
    shape_.pixels = src.shape[2] * src.shape[3];
    shape_.used = static_cast<int>(src.shape[1]);
    shape_.channels = static_cast<int>(PaddedChannels(src.shape[1]));
    shape_.dtype = src.dtype;
  }

  const TensorDesc& dst() const override { return dst_; }

  void Forward(const Tensor& src, const Tensor& dst, Stream& stream) override {
    AveragePoolForward(shape_, src.data, dst.data, HandleOf(stream));
  }
  void Backward(const Tensor& diff_dst, const Tensor& diff_src, Stream& stream) override {
    AveragePoolBackward(shape_, diff_dst.data, diff_src.data, HandleOf(stream));
  }

 private:
  AverageShape shape_;
  TensorDesc dst_;
};

}  // namespace

std::unique_ptr<MaxPool> MakeCudaMaxPool(const MaxPoolSpec& spec) {
  return std::make_unique<CudaMaxPool>(spec);
}

std::unique_ptr<GlobalAveragePool> MakeCudaGlobalAveragePool(const TensorDesc& src) {
  return std::make_unique<CudaGlobalAveragePool>(src);
}

}  // namespace trainer
