// SPDX-License-Identifier: Apache-2.0
//
// Batch norm on sizes that are awkward on purpose.

#include "tests/trainer/backend/probe.h"

namespace trainer {
namespace {

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
        dst_(!c.in_place                  ? device.Make(src_.desc)
             : c.add                      ? residual_
             : c.mode == Mode::kInference ? src_
                                          : device.Make(src_.desc)),
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
    if (dst_.data != src_.data && dst_.data != residual_.data) {
      device_.Poison(dst_.data, dst_.desc.bytes);
    }
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

}  // namespace

std::vector<ProbeCase> BatchNormCases() {
  std::vector<ProbeCase> cases;
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
  return cases;
}

}  // namespace trainer
