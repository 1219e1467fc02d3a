// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <utility>

#include "trainer/backend/measured_ops.h"
#include "trainer/backend/op_work.h"

namespace trainer {
namespace {

class MeasuredBatchNorm final : public BatchNorm {
 public:
  MeasuredBatchNorm(std::unique_ptr<BatchNorm> op, const BatchNormSpec& spec, OpRecorder& recorder)
      : op_(std::move(op)), recorder_(recorder) {
    const std::string shape =
        Times(spec.src.shape) + (spec.add ? ", add" : "") + (spec.relu ? ", ReLU" : "");
    for (const Mode mode : {Mode::kTraining, Mode::kFrozen, Mode::kInference}) {
      forward_[static_cast<int>(mode)] =
          recorder.Add({"", "batch norm forward", shape, BatchNormForwardWork(spec, mode)});
      backward_[static_cast<int>(mode)] =
          recorder.Add({"", "batch norm backward", shape, BatchNormBackwardWork(spec, mode)});
    }
    gradient_sums_ = recorder.Add(
        {"", "batch norm backward statistics", shape, BatchNormGradientSumsWork(spec)});
  }

  const TensorDesc& dst() const override { return op_->dst(); }
  std::size_t saved_bytes() const override { return op_->saved_bytes(); }
  std::size_t workspace_bytes() const override { return op_->workspace_bytes(); }

  void Forward(Mode mode, const TensorWithBnStats& src, const Tensor& residual,
               const BatchNormParameters& parameters, const Tensor& dst, void* saved,
               void* workspace, Stream& stream) override {
    recorder_.Run(forward_[static_cast<int>(mode)], parameters.scale.data, stream, [&] {
      op_->Forward(mode, src, residual, parameters, dst, saved, workspace, stream);
    });
  }
  void Backward(Mode mode, const Tensor& src, const Tensor& dst, const Tensor& diff_dst,
                const BatchNormParameters& parameters, const void* saved, const Tensor& diff_src,
                const Tensor& diff_residual, const Tensor& diff_scale, const Tensor& diff_shift,
                void* workspace, Stream& stream) override {
    recorder_.Run(backward_[static_cast<int>(mode)], parameters.scale.data, stream, [&] {
      op_->Backward(mode, src, dst, diff_dst, parameters, saved, diff_src, diff_residual,
                    diff_scale, diff_shift, workspace, stream);
    });
  }
  void BackwardWithBnStats(Mode mode, const Tensor& src, const TensorWithBnStats& diff_dst,
                           const BatchNormParameters& parameters, const void* saved,
                           const Tensor& diff_src, const Tensor& diff_scale,
                           const Tensor& diff_shift, void* workspace, Stream& stream) override {
    recorder_.Run(backward_[static_cast<int>(mode)], parameters.scale.data, stream, [&] {
      op_->BackwardWithBnStats(mode, src, diff_dst, parameters, saved, diff_src, diff_scale,
                               diff_shift, workspace, stream);
    });
  }
  std::size_t coefficients_bytes() const override { return op_->coefficients_bytes(); }
  GradientBeforeBnBackward BackwardStatsOnly(Mode mode, const Tensor& src, const Tensor& diff_dst,
                                             const BatchNormParameters& parameters,
                                             const void* saved, const Tensor& diff_residual,
                                             const Tensor& diff_scale, const Tensor& diff_shift,
                                             void* coefficients, void* workspace,
                                             Stream& stream) override {
    GradientBeforeBnBackward stats_only;
    recorder_.Run(gradient_sums_, parameters.scale.data, stream, [&] {
      stats_only = op_->BackwardStatsOnly(mode, src, diff_dst, parameters, saved, diff_residual,
                                          diff_scale, diff_shift, coefficients, workspace, stream);
    });
    return stats_only;
  }

 private:
  const std::unique_ptr<BatchNorm> op_;
  OpRecorder& recorder_;
  int forward_[3] = {};  // by mode
  int backward_[3] = {};
  int gradient_sums_ = 0;
};

// Its layer is that of the first batch norm.
class MeasuredDualBatchNorm final : public DualBatchNorm {
 public:
  MeasuredDualBatchNorm(std::unique_ptr<DualBatchNorm> op, const DualBatchNormSpec& spec,
                        OpRecorder& recorder)
      : op_(std::move(op)), recorder_(recorder) {
    const std::string shape = Times(spec.src.shape) + ", ReLU";
    for (const Mode mode : {Mode::kTraining, Mode::kFrozen, Mode::kInference}) {
      forward_[static_cast<int>(mode)] = recorder.Add(
          {"", "batch norm pair forward", shape, DualBatchNormForwardWork(spec, mode)});
      backward_[static_cast<int>(mode)] = recorder.Add(
          {"", "batch norm pair backward", shape, DualBatchNormBackwardWork(spec, mode)});
      first_stats_only_[static_cast<int>(mode)] =
          recorder.Add({"", "batch norm pair backward, but for one gradient", shape,
                        DualBatchNormFirstStatsOnlyWork(spec, mode)});
    }
  }

  const TensorDesc& dst() const override { return op_->dst(); }
  std::size_t saved_bytes() const override { return op_->saved_bytes(); }
  std::size_t workspace_bytes() const override { return op_->workspace_bytes(); }

  void Forward(Mode mode, const Operand& first, const Operand& second, const Tensor& dst,
               void* saved, void* workspace, Stream& stream) override {
    recorder_.Run(forward_[static_cast<int>(mode)], first.parameters.scale.data, stream,
                  [&] { op_->Forward(mode, first, second, dst, saved, workspace, stream); });
  }
  void Backward(Mode mode, const Operand& first, const Operand& second, const Tensor& dst,
                const Tensor& diff_dst, const void* saved, const Gradients& diff_first,
                const Gradients& diff_second, void* workspace, Stream& stream) override {
    recorder_.Run(backward_[static_cast<int>(mode)], first.parameters.scale.data, stream, [&] {
      op_->Backward(mode, first, second, dst, diff_dst, saved, diff_first, diff_second, workspace,
                    stream);
    });
  }
  std::size_t coefficients_bytes() const override { return op_->coefficients_bytes(); }
  GradientBeforeBnBackward BackwardFirstStatsOnly(Mode mode, const Operand& first,
                                                  const Operand& second, const Tensor& diff_dst,
                                                  const void* saved, const Gradients& diff_first,
                                                  const Gradients& diff_second, void* coefficients,
                                                  void* workspace, Stream& stream) override {
    GradientBeforeBnBackward stats_only;
    recorder_.Run(
        first_stats_only_[static_cast<int>(mode)], first.parameters.scale.data, stream, [&] {
          stats_only = op_->BackwardFirstStatsOnly(mode, first, second, diff_dst, saved, diff_first,
                                                   diff_second, coefficients, workspace, stream);
        });
    return stats_only;
  }

 private:
  const std::unique_ptr<DualBatchNorm> op_;
  OpRecorder& recorder_;
  int forward_[3] = {};  // by mode
  int backward_[3] = {};
  int first_stats_only_[3] = {};
};

}  // namespace

std::unique_ptr<BatchNorm> MakeMeasured(std::unique_ptr<BatchNorm> op, const BatchNormSpec& spec,
                                        OpRecorder& recorder) {
  return std::make_unique<MeasuredBatchNorm>(std::move(op), spec, recorder);
}

std::unique_ptr<DualBatchNorm> MakeMeasured(std::unique_ptr<DualBatchNorm> op,
                                            const DualBatchNormSpec& spec, OpRecorder& recorder) {
  return std::make_unique<MeasuredDualBatchNorm>(std::move(op), spec, recorder);
}

}  // namespace trainer
