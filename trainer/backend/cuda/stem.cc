// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/stem.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "trainer/backend/block_parts.h"
#include "trainer/backend/cuda/layout.h"
#include "trainer/backend/cuda/norm_shape.h"
#include "trainer/backend/cuda/runtime.h"
#include "trainer/backend/cuda/stem_kernels.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// pixels -> blocks -> convolution -> convolved -> norm, ReLU and pool -> dst
class CudaStem final : public Stem {
 public:
  CudaStem(Backend& backend, const StemSpec& spec)
      : spec_(spec),
        dtype_(backend.compute_type()),
        blocks_(CudaImages(
            {spec.batch, kBlockChannels, BlocksAcross(spec.height), BlocksAcross(spec.width)},
            dtype_)),
        convolution_(backend.MakeConvolution({blocks_, spec.out_channels, kBlockKernel})),
        norm_(NormShapeOf(convolution_->dst())),
        filter_(CudaFilter({spec.out_channels, 3, 7, 7}, dtype_)) {
    const Shape& src = convolution_->dst().shape;
    images_ = {.samples = src[0], .height = src[2], .width = src[3]};
    dst_ = CudaImages({src[0], src[1], WindowsAcross(src[2]), WindowsAcross(src[3])}, dtype_);
    pixels_.samples = spec.batch;
    pixels_.height = spec.height;
    pixels_.width = spec.width;
    for (int c = 0; c < 3; ++c) {
      pixels_.mean[c] = InputTransform::kMean[c];
      pixels_.factor[c] = 1 / InputTransform::kDeviation[c];
    }
    AppendConvolutionNormParameters("conv1", "bn1", filter_, parameters_);
  }

  const std::vector<ParameterSpec>& parameters() const override { return parameters_; }
  const TensorDesc& dst() const override { return dst_; }

  void Reserve(const BlockTimes& times, const std::string& name, MemoryPlan& plan) override {
    const auto keep = [&](const char* what, std::size_t bytes) {
      return plan.Reserve(name + what, bytes, times.forward, times.backward);
    };
    blocks_id_ = keep(".input", blocks_.bytes);
    filter_id_ = keep(".filter", convolution_->filter().bytes);
    convolved_id_ = keep(".convolved", convolution_->dst().bytes);
    saved_id_ = keep(".saved", static_cast<std::size_t>(NormSavedFloats(norm_)) * sizeof(float));
    chosen_id_ = keep(".chosen", dst_.bytes);
    winners_id_ = keep(".winners", dst_.bytes / SizeOf(dtype_));
    mask_id_ = keep(".mask", dst_.bytes / SizeOf(dtype_) / 8);
    const std::size_t workspace_bytes =
        std::max(convolution_->workspace_bytes(),
                 static_cast<std::size_t>(NormScratchFloats(norm_)) * sizeof(float));
    forward_workspace_id_ =
        plan.Reserve(name + ".workspace", workspace_bytes, times.forward, times.forward);
    backward_workspace_id_ =
        plan.Reserve(name + ".workspace", workspace_bytes, times.backward, times.backward);
    diff_convolved_id_ = plan.Reserve(name + ".diff_convolved", convolution_->dst().bytes,
                                      times.backward, times.backward);
    diff_filter_id_ = plan.Reserve(name + ".diff_filter", convolution_->filter().bytes,
                                   times.backward, times.backward);
  }

  void Bind(const MemoryPlan& plan, std::byte* arena,
            std::vector<ParameterBinding> bindings) override {
    DDL_CHECK(bindings.size() == parameters_.size());
    bindings_ = std::move(bindings);
    const auto at = [&](int id) { return arena + plan.offset(id); };
    input_ = {blocks_, at(blocks_id_)};
    block_filter_ = {convolution_->filter(), at(filter_id_)};
    convolved_ = {convolution_->dst(), at(convolved_id_)};
    diff_convolved_ = {convolution_->dst(), at(diff_convolved_id_)};
    diff_block_filter_ = {convolution_->filter(), at(diff_filter_id_)};
    saved_ = reinterpret_cast<float*>(at(saved_id_));
    chosen_ = at(chosen_id_);
    winners_ = reinterpret_cast<std::uint8_t*>(at(winners_id_));
    mask_ = reinterpret_cast<std::uint8_t*>(at(mask_id_));
    forward_workspace_ = at(forward_workspace_id_);
    backward_workspace_ = at(backward_workspace_id_);
  }

  void Forward(Mode mode, const InputBatch& batch, const Tensor& dst, Stream& stream) override {
    PixelsCall pixels = pixels_;
    pixels.pixels = batch.pixels;
    pixels.mirror = batch.mirror;
    pixels.lambda = &batch.loss->lambda;
    TransformPixelsToBlocks(pixels, dtype_, input_.data, HandleOf(stream));
    FilterToBlocks(bindings_[0].value.data, dtype_, filters(), block_filter_.data,
                   HandleOf(stream));
    convolution_->Forward(input_, block_filter_, convolved_, forward_workspace_, stream);

    PooledNormForward call;
    call.norm.src = convolved_.data;
    call.norm.of_batch = mode == Mode::kTraining;
    call.norm.scratch = reinterpret_cast<float*>(forward_workspace_);
    call.dst = dst.data;
    if (mode != Mode::kInference) {
      call.norm.saved = saved_;
      call.chosen = chosen_;
      call.winners = winners_;
      call.mask = mask_;
    }
    RunPooledNormForward(norm_, images_, Parameters(), call, HandleOf(stream));
  }

  void Backward(Mode mode, const Tensor& /*dst*/, const Tensor& diff_dst, Stream& stream) override {
    PooledNormBackward call;
    call.norm.src = convolved_.data;
    call.norm.diff_src = diff_convolved_.data;
    call.norm.diff_scale = bindings_[1].gradient.As<float>();
    call.norm.diff_shift = bindings_[2].gradient.As<float>();
    call.norm.of_batch = mode == Mode::kTraining;
    call.norm.saved = saved_;
    call.norm.scratch = reinterpret_cast<float*>(backward_workspace_);
    call.diff_dst = diff_dst.data;
    call.chosen = chosen_;
    call.winners = winners_;
    call.mask = mask_;
    RunPooledNormBackward(norm_, images_, Parameters().scale, call, HandleOf(stream));
    convolution_->BackwardFilter(input_, diff_convolved_, diff_block_filter_, backward_workspace_,
                                 stream);
    FilterFromBlocks(diff_block_filter_.data, dtype_, filters(), bindings_[0].gradient.data,
                     HandleOf(stream));
  }

 private:
  std::int64_t filters() const { return PaddedChannels(spec_.out_channels); }

  NormParameters Parameters() const {
    NormParameters parameters;
    parameters.scale = bindings_[1].value.As<float>();
    parameters.shift = bindings_[2].value.As<float>();
    parameters.running_mean = bindings_[3].value.As<float>();
    parameters.running_variance = bindings_[4].value.As<float>();
    const BatchNormSpec usual;
    parameters.epsilon = usual.epsilon;
    parameters.kept = usual.kept;
    return parameters;
  }

  const StemSpec spec_;
  const DType dtype_;
  const TensorDesc blocks_;
  const std::unique_ptr<Convolution> convolution_;
  const NormShape norm_;
  StemImages images_;
  PixelsCall pixels_;
  TensorDesc filter_;
  TensorDesc dst_;
  std::vector<ParameterSpec> parameters_;
  std::vector<ParameterBinding> bindings_;

  int blocks_id_ = -1;
  int filter_id_ = -1;
  int convolved_id_ = -1;
  int saved_id_ = -1;
  int chosen_id_ = -1;
  int winners_id_ = -1;
  int mask_id_ = -1;
  int forward_workspace_id_ = -1;
  int backward_workspace_id_ = -1;
  int diff_convolved_id_ = -1;
  int diff_filter_id_ = -1;
  Tensor input_;
  Tensor block_filter_;
  Tensor convolved_;
  Tensor diff_convolved_;
  Tensor diff_block_filter_;
  float* saved_ = nullptr;
  void* chosen_ = nullptr;
  std::uint8_t* winners_ = nullptr;
  std::uint8_t* mask_ = nullptr;
  void* forward_workspace_ = nullptr;
  void* backward_workspace_ = nullptr;
};

}  // namespace

std::unique_ptr<Stem> MakeCudaStem(Backend& backend, const StemSpec& spec) {
  return std::make_unique<CudaStem>(backend, spec);
}

}  // namespace trainer
