// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/cuda_ops.h"
#include "trainer/backend/cuda/norms/dual_batch_norm_kernels.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

DualNormGradients GradientsOf(const DualBatchNorm::Operand& operand,
                              const DualBatchNorm::Gradients& gradients) {
  DualNormGradients to;
  to.scale = operand.parameters.scale.As<float>();
  to.diff_src = gradients.src.data;
  to.diff_scale = gradients.scale.As<float>();
  to.diff_shift = gradients.shift.As<float>();
  return to;
}

class CudaDualBatchNorm final : public DualBatchNorm {
 public:
  explicit CudaDualBatchNorm(const DualBatchNormSpec& spec)
      : spec_(spec), shape_(NormShapeOf(spec.src)) {
    DDL_CHECK(spec.src.layout == Layout::kChannelsLast);
  }

  const TensorDesc& dst() const override { return spec_.src; }
  std::size_t saved_bytes() const override {
    return static_cast<std::size_t>(DualNormSavedFloats(shape_)) * sizeof(float) +
           static_cast<std::size_t>(NormMaskBytes(shape_));
  }
  std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(DualNormScratchFloats(shape_)) * sizeof(float);
  }

  void Forward(Mode mode, const Operand& first, const Operand& second, const Tensor& dst,
               void* saved, void* workspace, Stream& stream) override {
    DualNormForward call;
    call.first = {first.src.values.data, static_cast<const float*>(first.src.sums)};
    call.second = {second.src.values.data, static_cast<const float*>(second.src.sums)};
    call.dst = dst.data;
    call.of_batch = mode == Mode::kTraining;
    if (mode != Mode::kInference) {
      call.saved = static_cast<float*>(saved);
      call.mask = reinterpret_cast<std::uint8_t*>(call.saved + DualNormSavedFloats(shape_));
    }
    call.scratch = static_cast<float*>(workspace);
    RunDualNormForward(shape_, NormParametersOf(first.parameters, spec_.epsilon, spec_.kept),
                       NormParametersOf(second.parameters, spec_.epsilon, spec_.kept), call,
                       HandleOf(stream));
  }

  // Where the ReLU passes is in `saved`, in a sixteenth of the bytes of dst.
  void Backward(Mode mode, const Operand& first, const Operand& second, const Tensor& /*dst*/,
                const Tensor& diff_dst, const void* saved, const Gradients& diff_first,
                const Gradients& diff_second, void* workspace, Stream& stream) override {
    RunDualNormBackward(shape_, GradientsOf(first, diff_first), GradientsOf(second, diff_second),
                        CallOf(mode, first, second, diff_dst, saved, workspace), HandleOf(stream));
  }

  std::size_t coefficients_bytes() const override {
    return static_cast<std::size_t>(NormCoefficientsFloats(shape_)) * sizeof(float);
  }
  GradientBeforeBnBackward BackwardFirstStatsOnly(Mode mode, const Operand& first,
                                                  const Operand& second, const Tensor& diff_dst,
                                                  const void* saved, const Gradients& diff_first,
                                                  const Gradients& diff_second, void* coefficients,
                                                  void* workspace, Stream& stream) override {
    DualNormBackward call = CallOf(mode, first, second, diff_dst, saved, workspace);
    call.first_coefficients = static_cast<float*>(coefficients);
    RunDualNormBackward(shape_, GradientsOf(first, diff_first), GradientsOf(second, diff_second),
                        call, HandleOf(stream));
    return {.gradient = diff_dst,
            .src = first.src.values,
            .diff_residual = {},
            .mask = call.mask,
            .saved = saved,
            .coefficients = coefficients};
  }

 private:
  DualNormBackward CallOf(Mode mode, const Operand& first, const Operand& second,
                          const Tensor& diff_dst, const void* saved, void* workspace) const {
    DualNormBackward call;
    call.first = first.src.values.data;
    call.second = second.src.values.data;
    call.diff_dst = diff_dst.data;
    call.of_batch = mode == Mode::kTraining;
    call.saved = static_cast<const float*>(saved);
    call.mask = reinterpret_cast<const std::uint8_t*>(call.saved + DualNormSavedFloats(shape_));
    call.scratch = static_cast<float*>(workspace);
    return call;
  }

  const DualBatchNormSpec spec_;
  const NormShape shape_;
};

}  // namespace

std::unique_ptr<DualBatchNorm> MakeCudaDualBatchNorm(const DualBatchNormSpec& spec) {
  return std::make_unique<CudaDualBatchNorm>(spec);
}

}  // namespace trainer
