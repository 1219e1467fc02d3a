// SPDX-License-Identifier: Apache-2.0
//
// Convolution, batch norm, pools and linear layer as probes, on sizes that are awkward on purpose.

#include <utility>

#include "tests/trainer/backend/probe.h"

namespace trainer {
namespace {

struct ConvolutionCase {
  Shape src;
  std::int64_t out_channels, kernel, stride, padding;
};

class ConvolutionProbe final : public Probe {
 public:
  ConvolutionProbe(Device& device, const ConvolutionCase& c)
      : device_(device),
        src_(device.Make(c.src[1] == 3 ? device.backend().MakeInputTransform(c.src)->dst()
                                       : device.Images(c.src))),
        op_(device.backend().MakeConvolution(
            {src_.desc, c.out_channels, c.kernel, c.stride, c.padding})),
        filter_(device.Make(op_->filter())),
        dst_(device.Make(op_->dst())),
        diff_src_(device.Make(src_.desc)),
        diff_filter_(device.Make(op_->filter())),
        diff_dst_(device.Make(op_->dst())),
        workspace_(device.Scratch(op_->workspace_bytes())) {}

  std::vector<Input> inputs() const override {
    return {{"src", src_.desc.shape}, {"filter", filter_.desc.shape}};
  }

  Values Forward(const Values& inputs) override {
    device_.Import(inputs.at("src"), src_);
    device_.Import(inputs.at("filter"), filter_);
    Poison(dst_);
    op_->Forward(src_, filter_, dst_, workspace_, device_.stream());
    return {{"dst", device_.Export(dst_)}};
  }

  Values Backward(const Floats& diff_dst) override {
    device_.Import(diff_dst, diff_dst_);
    Poison(diff_filter_);
    op_->BackwardFilter(src_, diff_dst_, diff_filter_, workspace_, device_.stream());
    Values gradients{{"filter", device_.Export(diff_filter_)}};
    if (src_.desc.shape[1] == 3) return gradients;  // nothing goes back into the images
    Poison(diff_src_);
    op_->BackwardData(diff_dst_, filter_, diff_src_, workspace_, device_.stream());
    gradients["src"] = device_.Export(diff_src_);
    return gradients;
  }

 private:
  void Poison(const Tensor& output) {
    device_.Poison(output.data, output.desc.bytes);
    device_.Poison(workspace_, op_->workspace_bytes());
  }

  Device& device_;
  Tensor src_;
  std::unique_ptr<Convolution> op_;
  Tensor filter_, dst_, diff_src_, diff_filter_, diff_dst_;
  void* workspace_;
};

struct BatchNormCase {
  Shape src;
  Mode mode;
  bool add, relu;
  bool in_place = false;  // as far as the contract allows
  Fill fill = Fill::kNormal;
};

class BatchNormProbe final : public Probe {
 public:
  BatchNormProbe(Device& device, const BatchNormCase& c)
      : device_(device),
        case_(c),
        src_(device.Make(device.Images(c.src))),
        op_(device.backend().MakeBatchNorm({src_.desc, c.add, c.relu})),
        residual_(device.Make(src_.desc)),
        dst_(c.in_place && c.mode == Mode::kInference ? src_ : device.Make(src_.desc)),
        diff_dst_(device.Make(src_.desc)),
        diff_src_(c.in_place && !c.add ? diff_dst_ : device.Make(src_.desc)),
        diff_residual_(c.in_place ? diff_dst_ : device.Make(src_.desc)),
        diff_scale_(device.Make(PerChannel())),
        diff_shift_(device.Make(PerChannel())),
        saved_(device.Scratch(op_->saved_bytes())),
        workspace_(device.Scratch(op_->workspace_bytes())) {
    for (Tensor* tensor : {&parameters_.scale, &parameters_.shift, &parameters_.running_mean,
                           &parameters_.running_variance}) {
      *tensor = device.Make(PerChannel());
    }
  }

  std::vector<Input> inputs() const override {
    const Shape channels = PerChannel().shape;
    std::vector<Input> inputs{{"src", src_.desc.shape, case_.fill},
                              {"scale", channels, Fill::kAroundOne},
                              {"shift", channels},
                              {"running_mean", channels, case_.fill},
                              {"running_variance", channels, Fill::kAroundOne}};
    if (case_.add) inputs.push_back({"residual", src_.desc.shape});
    return inputs;
  }

  Values Forward(const Values& inputs) override {
    device_.Import(inputs.at("src"), src_);
    device_.Import(inputs.at("scale"), parameters_.scale);
    device_.Import(inputs.at("shift"), parameters_.shift);
    device_.Import(inputs.at("running_mean"), parameters_.running_mean);
    device_.Import(inputs.at("running_variance"), parameters_.running_variance);
    if (case_.add) device_.Import(inputs.at("residual"), residual_);
    if (dst_.data != src_.data) device_.Poison(dst_.data, dst_.desc.bytes);
    device_.Poison(saved_, op_->saved_bytes());
    device_.Poison(workspace_, op_->workspace_bytes());
    op_->Forward(case_.mode, src_, case_.add ? residual_ : Tensor{}, parameters_, dst_, saved_,
                 workspace_, device_.stream());
    return {{"dst", device_.Export(dst_)},
            {"running_mean", device_.Export(parameters_.running_mean)},
            {"running_variance", device_.Export(parameters_.running_variance)}};
  }

  Values Backward(const Floats& diff_dst) override {
    if (case_.mode == Mode::kInference) return {};
    for (const Tensor& output : {diff_src_, diff_residual_, diff_scale_, diff_shift_}) {
      device_.Poison(output.data, output.desc.bytes);
    }
    device_.Poison(workspace_, op_->workspace_bytes());
    device_.Import(diff_dst, diff_dst_);
    op_->Backward(case_.mode, src_, case_.relu ? dst_ : Tensor{}, diff_dst_, parameters_, saved_,
                  diff_src_, case_.add ? diff_residual_ : Tensor{}, diff_scale_, diff_shift_,
                  workspace_, device_.stream());
    Values gradients{{"src", device_.Export(diff_src_)},
                     {"scale", device_.Export(diff_scale_)},
                     {"shift", device_.Export(diff_shift_)}};
    if (case_.add) gradients["residual"] = device_.Export(diff_residual_);
    return gradients;
  }

 private:
  TensorDesc PerChannel() const { return RowMajor({src_.desc.shape[1]}, DType::kFloat32); }

  Device& device_;
  BatchNormCase case_;
  Tensor src_;
  std::unique_ptr<BatchNorm> op_;
  Tensor residual_, dst_, diff_dst_, diff_src_, diff_residual_, diff_scale_, diff_shift_;
  BatchNormParameters parameters_;
  void* saved_;
  void* workspace_;
};

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

std::string Dimensions(const Shape& shape) {
  std::string text;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) text += 'x';
    text += std::to_string(shape[axis]);
  }
  return text;
}

void AddConvolutions(std::vector<ProbeCase>& cases) {
  const ConvolutionCase all[] = {
      {{2, 5, 7, 6}, 9, 1, 1, 0},
      {{1, 16, 1, 1}, 8, 1, 1, 0},
      {{3, 8, 5, 5}, 16, 1, 2, 0},
      {{2, 17, 8, 7}, 13, 1, 2, 0},
      {{2, 64, 4, 4}, 64, 1, 1, 0},
      {{2, 6, 7, 5}, 10, 3, 1, 1},
      {{1, 16, 1, 1}, 16, 3, 1, 1},
      {{1, 8, 5, 9}, 8, 3, 2, 1},
      {{2, 33, 6, 6}, 17, 3, 2, 1},
      {{3, 32, 8, 8}, 32, 3, 2, 1},
      {{1, 16, 2, 3}, 24, 3, 2, 1},
      {{2, 16, 1, 1}, 16, 3, 2, 1},
      {{2, 3, 13, 15}, 64, 7, 2, 3},
      {{1, 3, 8, 9}, 10, 7, 2, 3},
      {{3, 3, 16, 16}, 16, 7, 2, 3},
      {{1, 3, 1, 1}, 4, 7, 2, 3},
      // Enough tiles for Winograd algorithms, some of which stick out.
      {{16, 16, 7, 5}, 16, 3, 1, 1},
      {{4, 32, 13, 14}, 16, 3, 1, 1},
  };
  for (const ConvolutionCase& c : all) {
    const std::string name = "convolution_" + Dimensions(c.src) + "_to" +
                             std::to_string(c.out_channels) + "_kernel" + std::to_string(c.kernel) +
                             "_stride" + std::to_string(c.stride);
    // Linear in each input: any step is right.
    cases.push_back({name,
                     [c](Device& device) { return std::make_unique<ConvolutionProbe>(device, c); },
                     1, 0.5});
  }
}

void AddBatchNorms(std::vector<ProbeCase>& cases) {
  for (const Mode mode : {Mode::kTraining, Mode::kFrozen, Mode::kInference}) {
    const std::string mode_name = mode == Mode::kTraining ? "training"
                                  : mode == Mode::kFrozen ? "frozen"
                                                          : "inference";
    for (const bool add : {false, true}) {
      for (const bool relu : {false, true}) {
        for (const bool in_place : {false, true}) {
          const BatchNormCase c{{2, 5, 4, 3}, mode, add, relu, in_place};
          cases.push_back(
              {"batch_norm_" + mode_name + (add ? "_add" : "") + (relu ? "_relu" : "") +
                   (in_place ? "_in_place" : ""),
               [c](Device& device) { return std::make_unique<BatchNormProbe>(device, c); }, 2,
               mode == Mode::kInference ? 0 : 1.0 / 256});
        }
      }
    }
  }
  const Shape shapes[] = {{1, 16, 1, 1}, {4, 7, 1, 1}, {1, 33, 7, 5}, {3, 64, 2, 2}};
  for (const Shape& shape : shapes) {
    const BatchNormCase c{shape, Mode::kTraining, true, true};
    cases.push_back({"batch_norm_" + Dimensions(shape),
                     [c](Device& device) { return std::make_unique<BatchNormProbe>(device, c); },
                     10, 1.0 / 256});
  }
  const BatchNormCase offset{{4, 16, 5, 5}, Mode::kTraining, false, false, false, Fill::kOffset};
  cases.push_back(
      {"batch_norm_far_from_zero",
       [offset](Device& device) { return std::make_unique<BatchNormProbe>(device, offset); }, 40});
}

}  // namespace

std::vector<ProbeCase> OpCases() {
  std::vector<ProbeCase> cases;
  AddConvolutions(cases);
  AddBatchNorms(cases);
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
