// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/cuda_ops.h"
#include "trainer/backend/cuda/norms/batch_norm_kernels.h"
#include "trainer/backend/cuda/norms/norm_autotune.h"
#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

class CudaBatchNorm final : public BatchNorm {
 public:
  CudaBatchNorm(const BatchNormSpec& spec, Autotuner& autotuner)
      : spec_(spec), shape_(NormShapeOf(spec.src)) {
    DDL_CHECK(spec.src.layout == Layout::kChannelsLast);
    const NormSize size = {.shape = shape_, .adds = spec.add, .has_mask = spec.relu};
    forward_launch_config_ = ForwardLaunchConfig(autotuner, size);
    backward_launch_config_ = BackwardLaunchConfig(autotuner, size);
  }

  const TensorDesc& dst() const override { return spec_.src; }
  // What NormSavedFloats says, and if there is a ReLU a mask of where it passes, in a sixteenth of
  // the bytes of dst.
  std::size_t saved_bytes() const override {
    return static_cast<std::size_t>(NormSavedFloats(shape_)) * sizeof(float) +
           static_cast<std::size_t>(spec_.relu ? NormMaskBytes(shape_) : 0);
  }
  std::size_t workspace_bytes() const override {
    return static_cast<std::size_t>(NormScratchFloats(shape_)) * sizeof(float);
  }

  void Forward(Mode mode, const Tensor& src, const Tensor& residual,
               const BatchNormParameters& parameters, const Tensor& dst, void* saved,
               void* workspace, Stream& stream) override {
    const NormParameters values = NormParametersOf(parameters, spec_.epsilon, spec_.kept);
    NormForward call;
    call.config = forward_launch_config_;
    call.src.values = src.data;
    call.residual = spec_.add ? residual.data : nullptr;
    call.dst = dst.data;
    call.relu = spec_.relu;
    call.of_batch = mode == Mode::kTraining;
    if (mode != Mode::kInference) {
      call.saved = SavedIn(saved).channels;
      call.mask = SavedIn(saved).mask;
    }
    call.scratch = static_cast<float*>(workspace);
    RunNormForward(shape_, values, call, HandleOf(stream));
  }

  void Backward(Mode mode, const Tensor& src, const Tensor& /*dst*/, const Tensor& diff_dst,
                const BatchNormParameters& parameters, const void* saved, const Tensor& diff_src,
                const Tensor& diff_residual, const Tensor& diff_scale, const Tensor& diff_shift,
                void* workspace, Stream& stream) override {
    NormBackward call;
    call.config = backward_launch_config_;
    call.src = src.data;
    call.diff_dst = diff_dst.data;
    call.diff_src = diff_src.data;
    call.diff_residual = spec_.add ? diff_residual.data : nullptr;
    call.diff_scale = diff_scale.As<float>();
    call.diff_shift = diff_shift.As<float>();
    call.of_batch = mode == Mode::kTraining;
    call.saved = SavedIn(saved).channels;
    call.mask = SavedIn(saved).mask;
    call.scratch = static_cast<float*>(workspace);
    RunNormBackward(shape_, parameters.scale.As<float>(), call, HandleOf(stream));
  }

 private:
  SavedNorm SavedIn(const void* saved) const {
    auto* channels = static_cast<float*>(const_cast<void*>(saved));
    auto* mask = reinterpret_cast<std::uint8_t*>(channels + NormSavedFloats(shape_));
    return {channels, spec_.relu ? mask : nullptr};
  }

  const BatchNormSpec spec_;
  const NormShape shape_;
  NormLaunchConfig forward_launch_config_, backward_launch_config_;
};

}  // namespace

NormShape NormShapeOf(const TensorDesc& images) {
  const Places places = PlacesOf(images);
  NormShape shape;
  shape.pixels = places.samples * places.height * places.width;
  shape.channels = static_cast<int>(places.used);
  shape.padded = static_cast<int>(places.channels);
  shape.dtype = images.dtype;
  shape.sms = SmCount();
  return shape;
}

NormParameters NormParametersOf(const BatchNormParameters& parameters, float epsilon, float kept) {
  NormParameters values;
  values.scale = parameters.scale.As<float>();
  values.shift = parameters.shift.As<float>();
  values.running_mean = parameters.running_mean.As<float>();
  values.running_variance = parameters.running_variance.As<float>();
  values.epsilon = epsilon;
  values.kept = kept;
  return values;
}

std::unique_ptr<BatchNorm> MakeCudaBatchNorm(const BatchNormSpec& spec, Autotuner& autotuner) {
  return std::make_unique<CudaBatchNorm>(spec, autotuner);
}

}  // namespace trainer
