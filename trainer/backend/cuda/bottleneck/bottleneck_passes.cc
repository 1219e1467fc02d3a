// SPDX-License-Identifier: Apache-2.0
//
// The forward and the backward pass of a bottleneck, and the calls of kernels and of cuDNN that
// they are made of.

#include <array>

#include "trainer/backend/cuda/bottleneck/bottleneck.h"
#include "trainer/backend/cuda/norms/dual_batch_norm_kernels.h"
#include "trainer/backend/cuda/runtime/runtime.h"
#include "trainer/core/error.h"

namespace trainer {

void CudaBottleneck::Forward(Mode mode, const Tensor& src, const Tensor& dst, Stream& stream) {
  if (below_forward_ != nullptr) {
    ConvolveWithEnd(mode, src, stream);
  } else {
    Convolve(conv1_, mode, src, stream);
  }
  Normalize(conv1_, mode, /*residual=*/nullptr, a1_, stream);
  Convolve(conv2_, mode, a1_, stream);
  if (conv3_forward_variant() == Conv3Variant::kFused) {
    ConvolveWithNorm(mode, stream);
  } else {
    Normalize(conv2_, mode, /*residual=*/nullptr, a2_, stream);
    Convolve(conv3_, mode, a2_, stream);
  }
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
  // The kernel still reads diff_dst when that of zs is there, and leaves out that of z3.
  const Tensor& diff_zs = conv3_variant_ == Conv3Variant::kFused ? diff_z3_ : diff_dst;
  const bool is_residual = diff_dst_is_residual();
  BackwardEnd(mode, diff_dst, diff_zs, shortcut_ || is_residual ? nullptr : diff_src.data, stream);
  if (shortcut_) BackwardShortcut(mode, src, diff_zs, diff_src, stream);
  BackwardNorm(conv2_, mode, diff_a2_, gradient_sums(conv3_), diff_a2_, nullptr, conv2_scratch_,
               stream);
  BackwardFilter(conv2_, mode, a1_, diff_a2_, conv2_scratch_, stream);
  BackwardData(conv2_, &conv1_, mode, diff_a2_, diff_a1_, conv2_scratch_, stream);
  const Tensor& residual = is_residual ? diff_dst : is_compact() ? diff_compact_ : diff_src;
  BackwardConv1(mode, src, residual.data, diff_src, stream);
}

void CudaBottleneck::BackwardEnd(Mode mode, const Tensor& diff_dst, const Tensor& diff_zs,
                                 void* diff_residual, Stream& stream) {
  if (conv3_variant_ == Conv3Variant::kFused) {
    if (shortcut_) {
      BackwardDualNorm(mode, diff_dst, /*diff_z3=*/{}, diff_zs, stream);
    } else {
      BackwardNormStats(mode, diff_dst, stream);
    }
    BackwardConv3Fused(mode, diff_dst, diff_residual, stream);
    return;
  }
  if (conv3_data_is_fused()) {
    BackwardNormStats(mode, diff_dst, stream);
    BackwardConv3Data(mode, diff_dst, stream);
    BackwardFilter(conv3_, mode, a2_, diff_z3_, end_scratch_, stream);
    return;
  }
  if (shortcut_) {
    BackwardDualNorm(mode, diff_dst, diff_z3_, diff_zs, stream);
  } else {
    BackwardNorm(conv3_, mode, diff_dst, {nullptr, end_sums(end_.first)}, diff_z3_, diff_residual,
                 end_scratch_, stream);
  }
  BackwardFilter(conv3_, mode, a2_, diff_z3_, end_scratch_, stream);
  BackwardData(conv3_, &conv2_, mode, diff_z3_, diff_a2_, end_scratch_, stream);
}

void CudaBottleneck::BackwardConv1(Mode mode, const Tensor& src, const void* residual,
                                   const Tensor& diff_src, Stream& stream) {
  if (bn1_variant_ != Bn1Variant::kSeparate) {
    BackwardConv1Fused(mode, src, residual, diff_src, stream);
    if (bn1_variant_ == Bn1Variant::kFused) {
      BackwardFilter(conv1_, mode, src, diff_z1_, conv1_scratch_, stream);
    }
    return;
  }
  BackwardNorm(conv1_, mode, diff_a1_, gradient_sums(conv2_), diff_a1_, nullptr, conv1_scratch_,
               stream);
  BackwardFilter(conv1_, mode, src, diff_a1_, conv1_scratch_, stream);
  if (below_ != nullptr) {
    BackwardConv1Fused(mode, src, residual, diff_src, stream);
  } else {
    BackwardData(conv1_, nullptr, mode, diff_a1_, diff_src, conv1_scratch_, stream);
  }
}

NormsForward CudaBottleneck::EndForward(Mode mode, const Tensor& src, const Tensor& dst) const {
  NormsForward end;
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
  const Conv1x1Forward call = {.front = below_forward_->forward,
                               .filter = conv1_.filter.value.data,
                               .dst = conv1_.z.data,
                               .partial_sums = mode == Mode::kTraining ? conv1_.sums : nullptr,
                               .scratch = static_cast<float*>(forward_scratch_)};
  DDL_CHECK(call.front.dst == src.data);
  const Step step =
      below_forward_->is_dual ? Step::kConvolutionBehindDualNorm : Step::kConvolutionBehindNorm;
  steps_.Run(step, conv1_, mode, stream,
             [&] { RunConv1x1Forward(conv1_forward(*below_forward_), call, HandleOf(stream)); });
}

void CudaBottleneck::ConvolveWithNorm(Mode mode, Stream& stream) {
  NormsForward front;
  front.first = {conv2_.source(mode), conv2_.parameters};
  front.of_batch = mode == Mode::kTraining;
  if (mode != Mode::kInference) front.saved = conv2_.saved.channels;
  const bool keeps_a2 = mode != Mode::kInference && needs_a2();
  if (keeps_a2) {
    front.dst = a2_.data;
    front.mask = mask(conv2_);
  }
  const Conv1x1Forward call = {.front = front,
                               .filter = conv3_.filter.value.data,
                               .dst = conv3_.z.data,
                               .partial_sums = mode == Mode::kTraining ? conv3_.sums : nullptr,
                               .scratch = static_cast<float*>(forward_scratch_)};
  const Step step =
      keeps_a2 ? Step::kConvolutionBehindOwnNorm : Step::kConvolutionBehindOwnNormUnwritten;
  steps_.Run(step, conv3_, mode, stream,
             [&] { RunConv1x1Forward(conv3_forward_, call, HandleOf(stream)); });
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
    call.mask = mask(stage);
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

NormBackwardFront CudaBottleneck::FrontOfConv1(Mode mode) const {
  return {.src = conv1_.z.data,
          .saved = conv1_.saved.channels,
          .sums = gradient_sums(conv2_).sums,
          .scale = conv1_.parameters.scale,
          .diff_scale = conv1_.scale.gradient.As<float>(),
          .diff_shift = conv1_.shift.gradient.As<float>(),
          .channels = conv1_.shape.channels,
          .of_batch = mode == Mode::kTraining,
          .diff_src = diff_z1_.data};
}

void CudaBottleneck::BackwardConv1Fused(Mode mode, const Tensor& src, const void* residual,
                                        const Tensor& diff_src, Stream& stream) {
  const Conv1Backward call = {.gradient = diff_a1_.data,
                              .filter = conv1_.filter.value.data,
                              .residual = residual,
                              .diff_src = diff_src.data,
                              .mask = below_->mask,
                              .first = below_->first,
                              .second = below_->second};
  const Conv1BackwardShape shape = conv1_backward(*below_);
  // `steps`: for one batch norm below, for two, and for one with a compact gradient.
  const auto run = [&](const std::array<Step, 3>& steps, const auto& queue) {
    const Step step = below_->is_dual ? steps[1] : is_compact() ? steps[2] : steps[0];
    steps_.Run(step, conv1_, mode, stream, [&] { queue(HandleOf(stream)); });
  };
  switch (bn1_variant_) {
    case Bn1Variant::kSeparate:
      return run({Step::kBackwardDataToNorm, Step::kBackwardDataToDualNorm,
                  Step::kBackwardDataToNormOfStride2},
                 [&](cudaStream_t queue) { RunConv1Backward(shape, call, queue); });
    case Bn1Variant::kFused:
      return run({Step::kNormBackwardDataToNorm, Step::kNormBackwardDataToDualNorm,
                  Step::kNormBackwardDataToNormOfStride2},
                 [&](cudaStream_t queue) {
                   RunConv1BackwardWithNorm(shape, call, FrontOfConv1(mode), queue);
                 });
    case Bn1Variant::kFusedWithFilter: {
      const Conv1FilterGradient filter = {.src = src.data,
                                          .diff_filter = conv1_.filter.gradient.data,
                                          .scratch = static_cast<float*>(conv1_scratch_)};
      return run({Step::kConv1BackwardToNorm, Step::kConv1BackwardToDualNorm,
                  Step::kConv1BackwardToNormOfStride2},
                 [&](cudaStream_t queue) {
                   RunConv1BackwardWithFilter(shape, call, FrontOfConv1(mode), filter, queue);
                 });
    }
  }
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
                                  const NormGradientSums& sums, const Tensor& diff_z,
                                  void* diff_residual, void* scratch, Stream& stream) {
  NormBackward call = BackwardCall(stage, mode, diff_a, scratch);
  call.sums = sums.sums;
  call.partial_sums = sums.partial;
  if (sums) call.mask = nullptr;  // diff_a is behind the ReLU already
  call.diff_src = diff_z.data;
  call.diff_residual = diff_residual;
  const bool is_rest = sums.partial.values != nullptr;
  steps_.Run(is_rest ? Step::kNormBackwardRest : Step::kNormBackward, stage, mode, stream,
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

void CudaBottleneck::BackwardConv3Data(Mode mode, const Tensor& diff_dst, Stream& stream) {
  const Conv3DataGradient call = {.gradient = diff_dst.data,
                                  .norm = {.src = conv3_.z.data,
                                           .saved = conv3_.saved.channels,
                                           .coefficients = coefficients_,
                                           .diff_src = diff_z3_.data},
                                  .filter = conv3_.filter.value.data,
                                  .mask = conv2_.saved.mask,
                                  .before = conv2_.z.data,
                                  .saved = conv2_.saved.channels,
                                  .diff_src = diff_a2_.data,
                                  .partial = conv3_.gradient_sums};
  steps_.Run(Step::kConv3BackwardData, conv3_, mode, stream,
             [&] { RunConv3DataGradient(*conv3_data_gradient_, call, HandleOf(stream)); });
}

}  // namespace trainer
