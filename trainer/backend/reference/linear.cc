// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/reference/reference_ops.h"

namespace trainer {
namespace {

using Index = std::int64_t;

class ReferenceLinear final : public Linear {
 public:
  explicit ReferenceLinear(const LinearSpec& spec)
      : batch_(spec.src.shape[0]), in_(spec.src.shape[1]), out_(spec.out_features) {
    CheckRowMajor(spec.src, 2);
    DDL_CHECK(out_ > 0);
    weight_ = RowMajor({out_, in_}, DType::kFloat32);
    dst_ = RowMajor({batch_, out_}, DType::kFloat32);
  }

  const TensorDesc& weight() const override { return weight_; }
  const TensorDesc& dst() const override { return dst_; }
  std::size_t workspace_bytes() const override { return 0; }

  void Forward(const Tensor& src, const Tensor& weight, const Tensor& bias, const Tensor& dst,
               void* /*workspace*/, Stream& /*stream*/) override {
    for (Index n = 0; n < batch_; ++n) {
      for (Index k = 0; k < out_; ++k) {
        double sum = bias.As<float>()[k];
        for (Index c = 0; c < in_; ++c) {
          sum += double{src.As<float>()[n * in_ + c]} * weight.As<float>()[k * in_ + c];
        }
        dst.As<float>()[n * out_ + k] = static_cast<float>(sum);
      }
    }
  }

  void Backward(const Tensor& src, const Tensor& weight, const Tensor& diff_dst,
                const Tensor& diff_src, const Tensor& diff_weight, const Tensor& diff_bias,
                void* /*workspace*/, Stream& /*stream*/) override {
    for (Index n = 0; n < batch_; ++n) {
      for (Index c = 0; c < in_; ++c) {
        double sum = 0;
        for (Index k = 0; k < out_; ++k) {
          sum += double{diff_dst.As<float>()[n * out_ + k]} * weight.As<float>()[k * in_ + c];
        }
        diff_src.As<float>()[n * in_ + c] = static_cast<float>(sum);
      }
    }
    for (Index k = 0; k < out_; ++k) {
      for (Index c = 0; c < in_; ++c) {
        double sum = 0;
        for (Index n = 0; n < batch_; ++n) {
          sum += double{diff_dst.As<float>()[n * out_ + k]} * src.As<float>()[n * in_ + c];
        }
        diff_weight.As<float>()[k * in_ + c] = static_cast<float>(sum);
      }
      double sum = 0;
      for (Index n = 0; n < batch_; ++n) sum += diff_dst.As<float>()[n * out_ + k];
      diff_bias.As<float>()[k] = static_cast<float>(sum);
    }
  }

 private:
  Index batch_;
  Index in_;
  Index out_;
  TensorDesc weight_;
  TensorDesc dst_;
};

}  // namespace

std::unique_ptr<Linear> MakeReferenceLinear(const LinearSpec& spec) {
  return std::make_unique<ReferenceLinear>(spec);
}

}  // namespace trainer
