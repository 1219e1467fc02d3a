// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/bottleneck/bottleneck.h"

#include <algorithm>
#include <span>
#include <utility>

#include "trainer/backend/cuda/bottleneck/bottleneck_autotune.h"
#include "trainer/backend/cuda/norms/dual_batch_norm_kernels.h"
#include "trainer/backend/cuda/norms/norm_autotune.h"
#include "trainer/backend/cuda/runtime/layout.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/backend/cuda/runtime/timing.h"
#include "trainer/core/error.h"

namespace trainer {
namespace {

// Of conv3 on the current GPU; none if there is no kernel for it.
std::optional<Conv3BackwardShape> Conv3BackwardShapeOf(const BottleneckStage& conv3) {
  const Shape& src = conv3.spec.src.shape;
  if (PaddedChannels(src[1]) != kConv3Channels || conv3.shape.padded != kConv3Filters) {
    return std::nullopt;
  }
  const Conv3BackwardShape shape = {.pixels = conv3.shape.pixels,
                                    .dtype = conv3.shape.dtype,
                                    .sms = conv3.shape.sms,
                                    .compute_capability = ComputeCapabilityMajor()};
  return HasConv3Backward(shape) ? std::optional(shape) : std::nullopt;
}

}  // namespace

CudaBottleneck::CudaBottleneck(CudaLibraries& libraries, const BottleneckSpec& spec)
    // Its gradient is added to that of the shortcut.
    : conv1_(libraries, ".1",
             {.src = spec.src, .out_channels = spec.mid_channels, .adds_diff_src = true},
             /*follows_norm=*/false, /*adds=*/false, /*relu=*/true),
      conv2_(libraries, ".2",
             {.src = conv1_.z.desc,
              .out_channels = spec.mid_channels,
              .kernel = 3,
              .stride = spec.stride,
              .padding = 1},
             /*follows_norm=*/true, /*adds=*/false, /*relu=*/true),
      conv3_(libraries, ".3", {.src = conv2_.z.desc, .out_channels = spec.out_channels},
             /*follows_norm=*/true, /*adds=*/!spec.has_downsample(), /*relu=*/true),
      libraries_(libraries) {
  AppendConvolutionNormParameters("conv1", "bn1", conv1_.convolution->filter(), parameters_);
  AppendConvolutionNormParameters("conv2", "bn2", conv2_.convolution->filter(), parameters_);
  AppendConvolutionNormParameters("conv3", "bn3", conv3_.convolution->filter(), parameters_);
  if (spec.has_downsample()) {
    shortcut_.emplace(
        libraries, ".downsample",
        ConvolutionSpec{.src = spec.src, .out_channels = spec.out_channels, .stride = spec.stride},
        /*follows_norm=*/false, /*adds=*/false, /*relu=*/false);
    AppendConvolutionNormParameters("downsample.0", "downsample.1",
                                    shortcut_->convolution->filter(), parameters_);
  }
  for (BottleneckStage* stage : stages()) {
    if (shortcut_ && (stage == &conv3_ || stage == &*shortcut_)) continue;  // dual
    const NormSize size = {stage->shape, stage->norm.add, stage->norm.relu};
    stage->forward_config = ForwardLaunchConfig(libraries.autotuner(), size);
    stage->backward_config = BackwardLaunchConfig(libraries.autotuner(), size);
  }
  a1_.desc = conv1_.z.desc;
  a2_.desc = conv2_.z.desc;
  diff_z3_.desc = conv3_.z.desc;
  diff_a2_.desc = a2_.desc;
  diff_a1_.desc = a1_.desc;
  end_.block = this;
  end_.is_dual = is_dual();
  conv1_backward_ = {.pixels = conv1_.shape.pixels,
                     .filters = conv1_.shape.padded,
                     .channels = static_cast<int>(PaddedChannels(src().shape[1])),
                     .stride = static_cast<int>(spec.stride),
                     .height = static_cast<int>(src().shape[2]),
                     .width = static_cast<int>(src().shape[3]),
                     .dtype = conv1_.shape.dtype,
                     .sms = conv1_.shape.sms,
                     .compute_capability = ComputeCapabilityMajor()};
  conv1_forward_ = {.src = NormShapeOf(src()),
                    .filters = conv1_.shape.padded,
                    .compute_capability = ComputeCapabilityMajor(),
                    .max_shared_bytes = MaxSharedBytes()};
  conv3_backward_ = Conv3BackwardShapeOf(conv3_);
  if (conv3_backward_ && !libraries.deterministic()) {
    conv3_variant_ = FasterConv3Variant(libraries.autotuner(), *this);
  }
}

Conv1BackwardShape CudaBottleneck::conv1_backward(const BlockEnd& below) const {
  Conv1BackwardShape shape = conv1_backward_;
  shape.is_dual = below.is_dual;
  if (!HasConv1Backward(shape)) shape.stride = 1;
  return shape;
}

Conv1ForwardShape CudaBottleneck::conv1_forward(const BlockEnd& below) const {
  Conv1ForwardShape shape = conv1_forward_;
  shape.is_dual = below.is_dual;
  return shape;
}

void CudaBottleneck::set_below(BlockEnd* below) {
  GoThrough(nullptr);
  TakeEnd(nullptr);
  if (below == nullptr || libraries_.deterministic()) return;
  SetBackwardBelow(*below);
  SetForwardBelow(*below);
}

void CudaBottleneck::SetBackwardBelow(BlockEnd& below) {
  const Conv1BackwardShape shape = conv1_backward(below);
  if (!HasConv1Backward(shape)) return;
  if (shape.stride == 2 && compact_shortcut_ == nullptr) {
    const Shape& images = shortcut_->z.desc.shape;
    diff_compact_.desc = CudaImages({images[0], src().shape[1], images[2], images[3]}, src().dtype);
    compact_shortcut_ = libraries_.MakeConvolution(
        {.src = diff_compact_.desc, .out_channels = shortcut_->spec.out_channels});
  }
  const Conv1Variant faster = FasterConv1BackwardVariant(libraries_.autotuner(), *this, below);
  GoThrough(faster == Conv1Variant::kFused ? &below : nullptr);
}

void CudaBottleneck::SetForwardBelow(BlockEnd& below) {
  if (!HasConv1Forward(conv1_forward(below))) return;
  const Conv1Variant faster = FasterConv1ForwardVariant(libraries_.autotuner(), *this, below);
  TakeEnd(faster == Conv1Variant::kFused ? &below : nullptr);
}

void CudaBottleneck::GoThrough(BlockEnd* below) {
  if (below_ != nullptr) below_->partial_blocks = 0;
  below_ = below;
  if (below_ != nullptr) below_->partial_blocks = Conv1BackwardBlocks(conv1_backward(*below_));
}

void CudaBottleneck::TakeEnd(BlockEnd* below) {
  if (below_forward_ != nullptr) below_forward_->is_left = false;
  below_forward_ = below;
  conv1_.partial_sums = below == nullptr ? 0 : Conv1ForwardBlocks(conv1_forward(*below));
  if (below_forward_ != nullptr) below_forward_->is_left = true;
}

std::vector<BottleneckStage*> CudaBottleneck::stages() {
  std::vector<BottleneckStage*> stages = {&conv1_, &conv2_, &conv3_};
  if (shortcut_) stages.push_back(&*shortcut_);
  return stages;
}

std::size_t CudaBottleneck::gradient_sums_bytes(const BottleneckStage& stage) const {
  const std::size_t bytes = stage.convolution->drelu_sums_bytes();
  const bool is_fused = &stage == &conv3_ && conv3_variant_ == Conv3Variant::kFused;
  return is_fused ? std::max(bytes, FloatBytes(NormSumsFloats(conv2_.shape))) : bytes;
}

const float* CudaBottleneck::gradient_sums(const BottleneckStage& stage) const {
  return gradient_sums_bytes(stage) > 0 ? stage.gradient_sums : nullptr;
}

std::size_t CudaBottleneck::end_scratch_bytes() const {
  std::size_t bytes = conv3_.scratch_bytes();
  if (shortcut_) {
    bytes = std::max({bytes, shortcut_->convolution->workspace_bytes(),
                      FloatBytes(DualNormScratchFloats(conv3_.shape))});
  }
  if (is_compact()) bytes = std::max(bytes, compact_shortcut_->workspace_bytes());
  if (conv3_variant_ == Conv3Variant::kFused) {
    bytes = std::max(bytes, FloatBytes(Conv3BackwardScratchFloats(*conv3_backward_)));
  }
  return bytes;
}

// What is needed at once: the end with conv3, then bn2 with conv2, then bn1 with conv1.
void CudaBottleneck::PlanBackward() {
  backward_plan_ = {};
  backward_pieces_ = {};
  const auto reserve = [&](const char* name, std::size_t bytes, int first, int last, auto*& to) {
    backward_pieces_.Reserve(backward_plan_, name, bytes, first, last, to);
  };
  reserve("end", end_scratch_bytes(), 0, 0, end_scratch_);
  reserve("diff_z3", diff_z3_.desc.bytes, 0, 0, diff_z3_.data);
  reserve("diff_a2", diff_a2_.desc.bytes, 0, 1, diff_a2_.data);
  reserve("conv2", conv2_.scratch_bytes(), 1, 1, conv2_scratch_);
  reserve("diff_a1", diff_a1_.desc.bytes, 1, 2, diff_a1_.data);
  reserve("conv1", conv1_.scratch_bytes(), 2, 2, conv1_scratch_);
  reserve("diff_compact", is_compact() ? diff_compact_.desc.bytes : 0, 0, 2, diff_compact_.data);
  backward_plan_.Solve();
}

void CudaBottleneck::Reserve(const BlockTimes& times, const std::string& name,
                             MemoryPlanner& plan) {
  const int forward = times.forward;
  const int backward = times.backward;
  pieces_ = {};
  const auto reserve = [&](const std::string& what, std::size_t bytes, int first, int last,
                           auto*& to) {
    pieces_.Reserve(plan, name + what, bytes, first, last, to);
  };
  std::size_t scratch_bytes = end_scratch_bytes();
  if (below_forward_ != nullptr) {
    scratch_bytes = std::max(scratch_bytes, FloatBytes(DualNormScratchFloats(conv1_forward_.src)));
  }
  for (BottleneckStage* stage : stages()) {
    const bool is_at_end = stage == &conv3_ || (shortcut_ && stage == &*shortcut_);
    reserve(stage->name + ".z", stage->z.desc.bytes, forward, backward, stage->z.data);
    // The block above reads those of an end that is left to it.
    reserve(stage->name + ".sums", stage->sums_bytes(), forward,
            forward + (is_at_end && end_.is_left ? 1 : 0), stage->sums);
    reserve(stage->name + ".gradient_sums", gradient_sums_bytes(*stage), backward, backward,
            stage->gradient_sums);
    scratch_bytes = std::max(scratch_bytes, stage->scratch_bytes());
    if (shortcut_ && stage == &*shortcut_) continue;
    const bool is_dual = shortcut_ && stage == &conv3_;
    reserve(stage->name + ".saved",
            FloatBytes(is_dual ? DualNormSavedFloats(stage->shape) : NormSavedFloats(stage->shape)),
            forward, backward, stage->saved.channels);
    reserve(stage->name + ".mask", static_cast<std::size_t>(NormMaskBytes(stage->shape)), forward,
            backward, stage->saved.mask);
  }
  reserve(".a1", a1_.desc.bytes, forward, backward, a1_.data);
  reserve(".a2", a2_.desc.bytes, forward, backward, a2_.data);
  if (conv3_variant_ == Conv3Variant::kFused) {
    reserve(".coefficients", FloatBytes(NormCoefficientsFloats(conv3_.shape)), backward, backward,
            coefficients_);
  }
  if (end_comes_summed()) {  // by the block above, a time before
    const std::size_t bytes = FloatBytes(end_.partial_blocks * NormSumsFloats(conv3_.shape));
    reserve(".first_sums", bytes, backward - 1, backward, end_.first.partial);
    reserve(".second_sums", is_dual() ? bytes : 0, backward - 1, backward, end_.second.partial);
  }
  reserve(".scratch", scratch_bytes, forward, forward, forward_scratch_);
  PlanBackward();
  reserve(".scratch", backward_plan_.total_bytes(), backward, backward, backward_memory_);
}

void CudaBottleneck::Bind(const MemoryPlanner& plan, std::byte* arena,
                          std::vector<ParameterBinding> bindings) {
  DDL_CHECK(bindings.size() == parameters_.size());
  pieces_.Bind(plan, arena);
  backward_pieces_.Bind(backward_plan_, backward_memory_);
  const ParameterBinding* binding = bindings.data();
  for (BottleneckStage* stage : stages()) {
    stage->filter = binding[0];
    stage->scale = binding[1];
    stage->shift = binding[2];
    stage->parameters =
        NormParametersOf({binding[1].value, binding[2].value, binding[3].value, binding[4].value},
                         stage->norm.epsilon, stage->norm.kept);
    binding += kConvolutionNormParameters;
  }
  BindEnd();
}

void CudaBottleneck::BindEnd() {
  end_.mask = conv3_.saved.mask;
  end_.first.z = conv3_.z.data;
  end_.first.saved = conv3_.saved.channels;
  if (!shortcut_) return;
  end_.second.z = shortcut_->z.data;
  end_.second.saved = conv3_.saved.channels + NormSavedFloats(conv3_.shape);
}

void CudaBottleneck::Forward(Mode mode, const Tensor& src, const Tensor& dst, Stream& stream) {
  if (below_forward_ != nullptr) {
    ConvolveWithEnd(mode, src, stream);
  } else {
    Convolve(conv1_, mode, src, stream);
  }
  Normalize(conv1_, mode, /*residual=*/nullptr, a1_, stream);
  Convolve(conv2_, mode, a1_, stream);
  Normalize(conv2_, mode, /*residual=*/nullptr, a2_, stream);
  Convolve(conv3_, mode, a2_, stream);
  if (shortcut_) Convolve(*shortcut_, mode, src, stream);
  if (end_.is_left) {
    end_.forward = EndForward(mode, src, dst);
  } else if (shortcut_) {
    NormalizeDual(mode, dst, stream);
  } else {
    Normalize(conv3_, mode, /*residual=*/src.data, dst, stream);
  }
}

void CudaBottleneck::Backward(Mode mode, const Tensor& src, const Tensor& /*dst*/,
                              const Tensor& diff_dst, const Tensor& diff_src, Stream& stream) {
  const bool is_fused = conv3_variant_ == Conv3Variant::kFused;
  // The kernel still reads diff_dst when that of zs is there, and leaves out that of z3.
  const Tensor& diff_zs = is_fused ? diff_z3_ : diff_dst;
  // Behind its ReLU diff_dst is the gradient of src as the residual: conv1's kernel reads it there.
  const bool is_residual = end_comes_summed() && below_ != nullptr && !shortcut_;
  void* const diff_residual = shortcut_ || is_residual ? nullptr : diff_src.data;
  if (is_fused) {
    if (shortcut_) {
      BackwardDualNorm(mode, diff_dst, /*diff_z3=*/{}, diff_zs, stream);
    } else {
      BackwardNormStats(mode, diff_dst, stream);
    }
    BackwardConv3Fused(mode, diff_dst, diff_residual, stream);
  } else {
    if (shortcut_) {
      BackwardDualNorm(mode, diff_dst, diff_z3_, diff_zs, stream);
    } else {
      BackwardNorm(conv3_, mode, diff_dst, /*sums=*/nullptr, diff_z3_, diff_residual, end_scratch_,
                   stream);
    }
    BackwardFilter(conv3_, mode, a2_, diff_z3_, end_scratch_, stream);
    BackwardData(conv3_, &conv2_, mode, diff_z3_, diff_a2_, end_scratch_, stream);
  }
  if (shortcut_) BackwardShortcut(mode, src, diff_zs, diff_src, stream);
  BackwardNorm(conv2_, mode, diff_a2_, gradient_sums(conv3_), diff_a2_, nullptr, conv2_scratch_,
               stream);
  BackwardFilter(conv2_, mode, a1_, diff_a2_, conv2_scratch_, stream);
  BackwardData(conv2_, &conv1_, mode, diff_a2_, diff_a1_, conv2_scratch_, stream);
  BackwardNorm(conv1_, mode, diff_a1_, gradient_sums(conv2_), diff_a1_, nullptr, conv1_scratch_,
               stream);
  BackwardFilter(conv1_, mode, src, diff_a1_, conv1_scratch_, stream);
  if (below_ != nullptr) {
    const Tensor& residual = is_residual ? diff_dst : is_compact() ? diff_compact_ : diff_src;
    BackwardConv1Fused(mode, residual.data, diff_src, stream);
  } else {
    BackwardData(conv1_, nullptr, mode, diff_a1_, diff_src, conv1_scratch_, stream);
  }
}

BlockEndForward CudaBottleneck::EndForward(Mode mode, const Tensor& src, const Tensor& dst) const {
  BlockEndForward end;
  end.first = {conv3_.source(mode), conv3_.parameters};
  if (shortcut_) {
    end.second = {shortcut_->source(mode), shortcut_->parameters};
  } else {
    end.residual = src.data;
  }
  end.dst = dst.data;
  end.of_batch = mode == Mode::kTraining;
  if (mode == Mode::kInference) return end;
  end.saved = conv3_.saved.channels;
  end.mask = conv3_.saved.mask;
  return end;
}

void CudaBottleneck::ConvolveWithEnd(Mode mode, const Tensor& src, Stream& stream) {
  const Conv1Forward call = {.end = below_forward_->forward,
                             .filter = conv1_.filter.value.data,
                             .dst = conv1_.z.data,
                             .partial_sums = mode == Mode::kTraining ? conv1_.sums : nullptr,
                             .scratch = static_cast<float*>(forward_scratch_)};
  DDL_CHECK(call.end.dst == src.data);
  const Step step =
      below_forward_->is_dual ? Step::kConvolutionBehindDualNorm : Step::kConvolutionBehindNorm;
  steps_.Run(step, conv1_, mode, stream,
             [&] { RunConv1Forward(conv1_forward(*below_forward_), call, HandleOf(stream)); });
}

void CudaBottleneck::Convolve(const BottleneckStage& stage, Mode mode, const Tensor& src,
                              Stream& stream) {
  steps_.Run(Step::kConvolution, stage, mode, stream, [&] {
    if (stage.source(mode).sums != nullptr) {
      stage.convolution->ForwardWithBnStats(src, stage.filter.value, stage.z, stage.sums,
                                            forward_scratch_, stream);
    } else {
      stage.convolution->Forward(src, stage.filter.value, stage.z, forward_scratch_, stream);
    }
  });
}

void CudaBottleneck::Normalize(const BottleneckStage& stage, Mode mode, const void* residual,
                               const Tensor& dst, Stream& stream) {
  NormForward call;
  call.config = stage.forward_config;
  call.src = stage.source(mode);
  call.residual = residual;
  call.dst = dst.data;
  call.relu = true;
  call.of_batch = mode == Mode::kTraining;
  if (mode != Mode::kInference) {
    call.saved = stage.saved.channels;
    call.mask = stage.saved.mask;
  }
  call.scratch = static_cast<float*>(forward_scratch_);
  steps_.Run(Step::kNorm, stage, mode, stream,
             [&] { RunNormForward(stage.shape, stage.parameters, call, HandleOf(stream)); });
}

void CudaBottleneck::NormalizeDual(Mode mode, const Tensor& dst, Stream& stream) {
  DualNormForward call;
  call.first = conv3_.source(mode);
  call.second = shortcut_->source(mode);
  call.dst = dst.data;
  call.of_batch = mode == Mode::kTraining;
  if (mode != Mode::kInference) {
    call.saved = conv3_.saved.channels;
    call.mask = conv3_.saved.mask;
  }
  call.scratch = static_cast<float*>(forward_scratch_);
  steps_.Run(Step::kDualNorm, conv3_, mode, stream, [&] {
    RunDualNormForward(conv3_.shape, conv3_.parameters, shortcut_->parameters, call,
                       HandleOf(stream));
  });
}

void CudaBottleneck::BackwardFilter(const BottleneckStage& stage, Mode mode, const Tensor& x,
                                    const Tensor& diff_z, void* scratch, Stream& stream) {
  steps_.Run(Step::kBackwardFilter, stage, mode, stream, [&] {
    stage.convolution->BackwardFilter(x, diff_z, stage.filter.gradient, scratch, stream);
  });
}

void CudaBottleneck::BackwardData(const BottleneckStage& stage, const BottleneckStage* before,
                                  Mode mode, const Tensor& diff_z, const Tensor& diff_x,
                                  void* scratch, Stream& stream) {
  CudaConvolution& convolution = *stage.convolution;
  steps_.Run(Step::kBackwardData, stage, mode, stream, [&] {
    if (convolution.drelu_sums_bytes() > 0) {
      convolution.BackwardDataDreluBnStats(diff_z, stage.filter.value, before->z.data,
                                           before->saved.channels, diff_x, stage.gradient_sums,
                                           scratch, stream);
    } else {
      convolution.BackwardData(diff_z, stage.filter.value, diff_x, scratch, stream);
    }
  });
}

void CudaBottleneck::BackwardShortcut(Mode mode, const Tensor& src, const Tensor& diff_zs,
                                      const Tensor& diff_src, Stream& stream) {
  BackwardFilter(*shortcut_, mode, src, diff_zs, end_scratch_, stream);
  if (!is_compact()) {
    BackwardData(*shortcut_, nullptr, mode, diff_zs, diff_src, end_scratch_, stream);
    return;
  }
  steps_.Run(Step::kBackwardDataCompact, *shortcut_, mode, stream, [&] {
    compact_shortcut_->BackwardData(diff_zs, shortcut_->filter.value, diff_compact_, end_scratch_,
                                    stream);
  });
}

void CudaBottleneck::BackwardConv1Fused(Mode mode, const void* residual, const Tensor& diff_src,
                                        Stream& stream) {
  const Conv1Backward call = {.gradient = diff_a1_.data,
                              .filter = conv1_.filter.value.data,
                              .residual = residual,
                              .diff_src = diff_src.data,
                              .mask = below_->mask,
                              .first = below_->first,
                              .second = below_->second};
  const Step step = below_->is_dual ? Step::kBackwardDataToDualNorm
                    : is_compact()  ? Step::kBackwardDataToNormOfStride2
                                    : Step::kBackwardDataToNorm;
  steps_.Run(step, conv1_, mode, stream,
             [&] { RunConv1Backward(conv1_backward(*below_), call, HandleOf(stream)); });
}

namespace {

NormBackward BackwardCall(const BottleneckStage& stage, Mode mode, const Tensor& diff_a,
                          void* scratch) {
  NormBackward call;
  call.config = stage.backward_config;
  call.src = stage.z.data;
  call.mask = stage.saved.mask;
  call.diff_dst = diff_a.data;
  call.diff_scale = stage.scale.gradient.As<float>();
  call.diff_shift = stage.shift.gradient.As<float>();
  call.of_batch = mode == Mode::kTraining;
  call.saved = stage.saved.channels;
  call.scratch = static_cast<float*>(scratch);
  return call;
}

DualNormGradients GradientsOf(const BottleneckStage& stage, const Tensor& diff_z,
                              const NormPartialSums& sums) {
  return {.scale = stage.parameters.scale,
          .diff_src = diff_z.data,
          .diff_scale = stage.scale.gradient.As<float>(),
          .diff_shift = stage.shift.gradient.As<float>(),
          .partial_sums = sums};
}

}  // namespace

void CudaBottleneck::BackwardNorm(const BottleneckStage& stage, Mode mode, const Tensor& diff_a,
                                  const float* sums, const Tensor& diff_z, void* diff_residual,
                                  void* scratch, Stream& stream) {
  NormBackward call = BackwardCall(stage, mode, diff_a, scratch);
  call.sums = sums;
  const bool is_end = &stage == &conv3_;
  if (is_end) call.partial_sums = end_sums(end_.first);
  const bool is_summed = is_end && end_comes_summed();
  if (sums != nullptr || is_summed) call.mask = nullptr;  // diff_a is behind the ReLU already
  call.diff_src = diff_z.data;
  call.diff_residual = diff_residual;
  steps_.Run(is_summed ? Step::kNormBackwardRest : Step::kNormBackward, stage, mode, stream,
             [&] { RunNormBackward(stage.shape, stage.parameters.scale, call, HandleOf(stream)); });
}

void CudaBottleneck::BackwardNormStats(Mode mode, const Tensor& diff_dst, Stream& stream) {
  NormBackward call = BackwardCall(conv3_, mode, diff_dst, end_scratch_);
  call.partial_sums = end_sums(end_.first);
  const Step step = end_comes_summed() ? Step::kNormBackwardCoefficients : Step::kNormBackwardStats;
  steps_.Run(step, conv3_, mode, stream, [&] {
    RunNormBackwardStatsOnly(conv3_.shape, conv3_.parameters.scale, call, coefficients_,
                             HandleOf(stream));
  });
}

void CudaBottleneck::BackwardDualNorm(Mode mode, const Tensor& diff_dst, const Tensor& diff_z3,
                                      const Tensor& diff_zs, Stream& stream) {
  DualNormBackward call;
  call.first = conv3_.z.data;
  call.second = shortcut_->z.data;
  call.mask = end_comes_summed() ? nullptr : conv3_.saved.mask;
  call.diff_dst = diff_dst.data;
  call.of_batch = mode == Mode::kTraining;
  call.saved = conv3_.saved.channels;
  call.first_coefficients = diff_z3 ? nullptr : coefficients_;
  call.scratch = static_cast<float*>(end_scratch_);
  const DualNormGradients first = GradientsOf(conv3_, diff_z3, end_sums(end_.first));
  const DualNormGradients second = GradientsOf(*shortcut_, diff_zs, end_sums(end_.second));
  Step step = diff_z3 ? Step::kDualNormBackward : Step::kDualNormBackwardButFirst;
  if (end_comes_summed()) {
    step = diff_z3 ? Step::kDualNormBackwardRest : Step::kDualNormBackwardRestButFirst;
  }
  steps_.Run(step, conv3_, mode, stream,
             [&] { RunDualNormBackward(conv3_.shape, first, second, call, HandleOf(stream)); });
}

void CudaBottleneck::BackwardConv3Fused(Mode mode, const Tensor& diff_dst, void* diff_residual,
                                        Stream& stream) {
  const Conv3Backward call = {.gradient = diff_dst.data,
                              .mask = end_comes_summed() ? nullptr : conv3_.saved.mask,
                              .convolved = conv3_.z.data,
                              .means = conv3_.saved.channels,
                              .coefficients = coefficients_,
                              .diff_residual = diff_residual,
                              .filter = conv3_.filter.value.data,
                              .diff_filter = conv3_.filter.gradient.data,
                              .before = conv2_.z.data,
                              .saved = conv2_.saved.channels,
                              .diff_src = diff_a2_.data,
                              .sums = conv3_.gradient_sums,
                              .scratch = static_cast<float*>(end_scratch_)};
  steps_.Run(Step::kConv3Backward, conv3_, mode, stream,
             [&] { RunConv3Backward(*conv3_backward_, call, HandleOf(stream)); });
}

std::unique_ptr<Bottleneck> MakeCudaBottleneck(CudaLibraries& libraries,
                                               const BottleneckSpec& spec) {
  return std::make_unique<CudaBottleneck>(libraries, spec);
}

}  // namespace trainer
