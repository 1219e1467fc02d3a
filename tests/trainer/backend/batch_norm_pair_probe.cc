// SPDX-License-Identifier: Apache-2.0
//
// The sum of two batch norms on sizes that are awkward on purpose.

#include <array>

#include "tests/trainer/backend/probe.h"

namespace trainer {
namespace {

struct BatchNormPairCase {
  Shape src;
  Mode mode;
  bool in_place = false;  // as far as the contract allows
  Fill fill = Fill::kNormal;
};

class BatchNormPairProbe final : public Probe {
 public:
  BatchNormPairProbe(Device& device, const BatchNormPairCase& c)
      : device_(device),
        case_(c),
        desc_(device.Images(c.src)),
        op_(device.backend().MakeDualBatchNorm({desc_})),
        dst_(device.Make(desc_)),
        diff_dst_(device.Make(desc_)),
        saved_(device.Scratch(op_->saved_bytes())),
        workspace_(device.Scratch(op_->workspace_bytes())) {
    for (Side& side : sides_) {
      side.operand.src.values = device.Make(desc_);
      for (Tensor* tensor : side.PerChannel()) *tensor = device.Make(Channels());
      side.gradients.src = device.Make(desc_);
    }
    if (c.in_place) sides_[1].gradients.src = diff_dst_;
  }

  std::vector<Input> inputs() const override {
    std::vector<Input> inputs;
    for (const std::string side : {"first_", "second_"}) {
      inputs.insert(inputs.end(),
                    {{side + "src", desc_.shape, case_.fill},
                     {side + "scale", Channels().shape, Fill::kAroundOne},
                     {side + "shift", Channels().shape},
                     {side + "running_mean", Channels().shape, case_.fill},
                     {side + "running_variance", Channels().shape, Fill::kAroundOne}});
    }
    return inputs;
  }

  Values Forward(const Values& inputs) override {
    for (Side& side : sides_) {
      const BatchNormParameters& parameters = side.operand.parameters;
      device_.Import(inputs.at(side.name + "src"), side.operand.src.values);
      device_.Import(inputs.at(side.name + "scale"), parameters.scale);
      device_.Import(inputs.at(side.name + "shift"), parameters.shift);
      device_.Import(inputs.at(side.name + "running_mean"), parameters.running_mean);
      device_.Import(inputs.at(side.name + "running_variance"), parameters.running_variance);
    }
    device_.Poison(dst_.data, dst_.desc.bytes);
    device_.Poison(saved_, op_->saved_bytes());
    device_.Poison(workspace_, op_->workspace_bytes());
    op_->Forward(case_.mode, sides_[0].operand, sides_[1].operand, dst_,
                 case_.mode == Mode::kInference ? nullptr : saved_, workspace_, device_.stream());
    Values outputs{{"dst", device_.Export(dst_)}};
    for (const Side& side : sides_) {
      const BatchNormParameters& parameters = side.operand.parameters;
      outputs[side.name + "running_mean"] = device_.Export(parameters.running_mean);
      outputs[side.name + "running_variance"] = device_.Export(parameters.running_variance);
    }
    return outputs;
  }

  Values Backward(const Floats& diff_dst) override {
    if (case_.mode == Mode::kInference) return {};
    for (const Side& side : sides_) {
      for (const Tensor& tensor :
           {side.gradients.src, side.gradients.scale, side.gradients.shift}) {
        device_.Poison(tensor.data, tensor.desc.bytes);
      }
    }
    device_.Poison(workspace_, op_->workspace_bytes());
    device_.Import(diff_dst, diff_dst_);
    op_->Backward(case_.mode, sides_[0].operand, sides_[1].operand, dst_, diff_dst_, saved_,
                  sides_[0].gradients, sides_[1].gradients, workspace_, device_.stream());
    Values gradients;
    for (const Side& side : sides_) {
      gradients[side.name + "src"] = device_.Export(side.gradients.src);
      gradients[side.name + "scale"] = device_.Export(side.gradients.scale);
      gradients[side.name + "shift"] = device_.Export(side.gradients.shift);
    }
    return gradients;
  }

 private:
  struct Side {
    std::string name;
    DualBatchNorm::Operand operand = {};
    DualBatchNorm::Gradients gradients = {};

    std::array<Tensor*, 6> PerChannel() {
      BatchNormParameters& parameters = operand.parameters;
      return {&parameters.scale,        &parameters.shift,
              &parameters.running_mean, &parameters.running_variance,
              &gradients.scale,         &gradients.shift};
    }
  };

  TensorDesc Channels() const { return RowMajor({desc_.shape[1]}, DType::kFloat32); }

  Device& device_;
  BatchNormPairCase case_;
  TensorDesc desc_;
  std::unique_ptr<DualBatchNorm> op_;
  std::array<Side, 2> sides_ = {Side{"first_"}, Side{"second_"}};
  Tensor dst_, diff_dst_;
  void* saved_;
  void* workspace_;
};

}  // namespace

std::vector<ProbeCase> BatchNormPairCases() {
  std::vector<ProbeCase> cases;
  const auto add = [&](const std::string& name, const BatchNormPairCase& c, double tolerance,
                       double step) {
    cases.push_back(
        {"batch_norm_pair_" + name,
         [c](Device& device) { return std::make_unique<BatchNormPairProbe>(device, c); }, tolerance,
         step, /*has_choices=*/true});
  };
  const std::pair<const char*, Mode> modes[] = {
      {"training", Mode::kTraining}, {"frozen", Mode::kFrozen}, {"inference", Mode::kInference}};
  for (const auto& [name, mode] : modes) {
    const double step = mode == Mode::kInference ? 0 : 1.0 / 256;
    add(name, {{2, 5, 4, 3}, mode}, 3, step);
    add(std::string(name) + "_in_place", {{2, 5, 4, 3}, mode, true}, 3, step);
  }
  for (const Shape& shape : {Shape{1, 16, 1, 1}, {4, 7, 1, 1}, {1, 33, 7, 5}, {3, 64, 2, 2}}) {
    add(Dimensions(shape), {shape, Mode::kTraining}, 10, 1.0 / 256);
  }
  add("far_from_zero", {{4, 16, 5, 5}, Mode::kTraining, false, Fill::kOffset}, 40, 1.0 / 128);
  return cases;
}

}  // namespace trainer
