// SPDX-License-Identifier: Apache-2.0
//
// Max pool, global average pool and linear layer on sizes that are awkward on purpose.

#include "tests/trainer/backend/probe.h"

namespace trainer {
namespace {

class MaxPoolProbe final : public Probe {
 public:
  MaxPoolProbe(Device& device, const Shape& src, Fill fill)
      : device_(device),
        fill_(fill),
        src_(device.Make(device.Images(src))),
        op_(device.backend().MakeMaxPool({src_.desc})),
        dst_(device.Make(op_->dst())),
        diff_dst_(device.Make(op_->dst())),
        diff_src_(device.Make(src_.desc)),
        saved_(device.Scratch(op_->saved_bytes())) {}

  std::vector<Input> inputs() const override { return {{"src", src_.desc.shape, fill_}}; }

  Values Forward(const Values& inputs) override {
    device_.Import(inputs.at("src"), src_);
    device_.Poison(dst_.data, dst_.desc.bytes);
    device_.Poison(saved_, op_->saved_bytes());
    op_->Forward(src_, dst_, saved_, device_.stream());
    return {{"dst", device_.Export(dst_)}};
  }

  Values Backward(const Floats& diff_dst) override {
    device_.Import(diff_dst, diff_dst_);
    device_.Poison(diff_src_.data, diff_src_.desc.bytes);
    op_->Backward(diff_dst_, saved_, diff_src_, device_.stream());
    return {{"src", device_.Export(diff_src_)}};
  }

 private:
  Device& device_;
  Fill fill_;
  Tensor src_;
  std::unique_ptr<MaxPool> op_;
  Tensor dst_, diff_dst_, diff_src_;
  void* saved_;
};

// Global average pool and linear layer together: nothing else gives a linear layer its input.
class PooledLinearProbe final : public Probe {
 public:
  PooledLinearProbe(Device& device, const Shape& src, std::int64_t out_features)
      : device_(device),
        src_(device.Make(device.Images(src))),
        pool_(device.backend().MakeGlobalAveragePool(src_.desc)),
        linear_(device.backend().MakeLinear({pool_->dst(), out_features})),
        features_(device.Make(pool_->dst())),
        weight_(device.Make(linear_->weight())),
        bias_(device.Make(RowMajor({out_features}, DType::kFloat32))),
        dst_(device.Make(linear_->dst())),
        diff_src_(device.Make(src_.desc)),
        diff_features_(device.Make(pool_->dst())),
        diff_weight_(device.Make(linear_->weight())),
        diff_bias_(device.Make(bias_.desc)),
        diff_dst_(device.Make(linear_->dst())),
        workspace_(device.Scratch(linear_->workspace_bytes())) {}

  std::vector<Input> inputs() const override {
    return {{"src", src_.desc.shape}, {"weight", weight_.desc.shape}, {"bias", bias_.desc.shape}};
  }

  Values Forward(const Values& inputs) override {
    device_.Import(inputs.at("src"), src_);
    device_.Import(inputs.at("weight"), weight_);
    device_.Import(inputs.at("bias"), bias_);
    Poison({features_, dst_});
    pool_->Forward(src_, features_, device_.stream());
    linear_->Forward(features_, weight_, bias_, dst_, workspace_, device_.stream());
    return {{"features", device_.Export(features_)}, {"dst", device_.Export(dst_)}};
  }

  Values Backward(const Floats& diff_dst) override {
    device_.Import(diff_dst, diff_dst_);
    Poison({diff_src_, diff_features_, diff_weight_, diff_bias_});
    linear_->Backward(features_, weight_, diff_dst_, diff_features_, diff_weight_, diff_bias_,
                      workspace_, device_.stream());
    pool_->Backward(diff_features_, diff_src_, device_.stream());
    return {{"src", device_.Export(diff_src_)},
            {"weight", device_.Export(diff_weight_)},
            {"bias", device_.Export(diff_bias_)}};
  }

 private:
  void Poison(const std::vector<Tensor>& outputs) {
    for (const Tensor& output : outputs) device_.Poison(output.data, output.desc.bytes);
    device_.Poison(workspace_, linear_->workspace_bytes());
  }

  Device& device_;
  Tensor src_;
  std::unique_ptr<GlobalAveragePool> pool_;
  std::unique_ptr<Linear> linear_;
  Tensor features_, weight_, bias_, dst_;
  Tensor diff_src_, diff_features_, diff_weight_, diff_bias_, diff_dst_;
  void* workspace_;
};

}  // namespace

std::vector<ProbeCase> PoolingCases() {
  std::vector<ProbeCase> cases;
  const Shape images[] = {{2, 5, 7, 6}, {1, 16, 1, 1}, {1, 17, 2, 3}, {2, 8, 8, 8}};
  for (const Shape& shape : images) {
    cases.push_back({"max_pool_" + Dimensions(shape), [shape](Device& device) {
                       return std::make_unique<MaxPoolProbe>(device, shape, Fill::kDistinct);
                     }});
    cases.push_back({"max_pool_of_ties_" + Dimensions(shape),
                     [shape](Device& device) {
                       return std::make_unique<MaxPoolProbe>(device, shape, Fill::kNormal);
                     },
                     1, 0});
    cases.push_back(
        {"pooled_linear_" + Dimensions(shape),
         [shape](Device& device) { return std::make_unique<PooledLinearProbe>(device, shape, 11); },
         1, 0.5});
  }
  return cases;
}

}  // namespace trainer
