// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/bottleneck/bottleneck.h"

#include <algorithm>
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

// The same.
std::optional<Conv3DataGradientShape> Conv3DataGradientShapeOf(const BottleneckStage& conv3) {
  const Conv3DataGradientShape shape = {
      .pixels = conv3.shape.pixels,
      .filters = conv3.shape.padded,
      .channels = static_cast<int>(PaddedChannels(conv3.spec.src.shape[1])),
      .dtype = conv3.shape.dtype,
      .sms = conv3.shape.sms,
      .compute_capability = ComputeCapabilityMajor(),
      .max_shared_bytes = MaxSharedBytes()};
  return HasConv3DataGradient(shape) ? std::optional(shape) : std::nullopt;
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
  diff_z1_.desc = a1_.desc;
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
                     .compute_capability = ComputeCapabilityMajor(),
                     .max_shared_bytes = MaxSharedBytes()};
  conv1_forward_ = {.src = NormShapeOf(src()),
                    .filters = conv1_.shape.padded,
                    .compute_capability = ComputeCapabilityMajor(),
                    .max_shared_bytes = MaxSharedBytes()};
  conv3_forward_ = {.src = conv2_.shape,
                    .filters = conv3_.shape.padded,
                    .norms = NormsInFront::kNorm,
                    .compute_capability = ComputeCapabilityMajor(),
                    .max_shared_bytes = MaxSharedBytes()};
  conv3_backward_ = Conv3BackwardShapeOf(conv3_);
  conv3_data_gradient_ = Conv3DataGradientShapeOf(conv3_);
  if (libraries.deterministic()) return;
  if (conv3_backward_) conv3_variant_ = FasterConv3Variant(libraries.autotuner(), *this);
  if (HasConv1x1Forward(conv3_forward_)) {
    set_conv3_forward_variant(FasterConv3ForwardVariant(libraries.autotuner(), *this));
    has_a2_ = needs_a2();
  }
}

Conv1BackwardShape CudaBottleneck::conv1_backward(const BlockEnd& below) const {
  Conv1BackwardShape shape = conv1_backward_;
  shape.is_dual = below.is_dual;
  if (!HasConv1Backward(shape)) shape.stride = 1;
  return shape;
}

Conv1x1ForwardShape CudaBottleneck::conv1_forward(const BlockEnd& below) const {
  Conv1x1ForwardShape shape = conv1_forward_;
  shape.norms = below.is_dual ? NormsInFront::kDualNorm : NormsInFront::kNormAndResidual;
  return shape;
}

void CudaBottleneck::set_conv3_forward_variant(Conv3Variant variant) {
  conv3_.partial_sums = variant == Conv3Variant::kFused ? Conv1x1ForwardBlocks(conv3_forward_) : 0;
}

void CudaBottleneck::set_below(BlockEnd* below) {
  bn1_variant_ = Bn1Variant::kSeparate;
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
  if (below_ == nullptr) return;
  // Without sums a pass would have to add them up.
  if (HasConv1BackwardWithNorm(shape) && gradient_sums_bytes(conv2_) > 0) {
    bn1_variant_ = FasterBn1Variant(libraries_.autotuner(), *this);
    if (HasConv1BackwardWithFilter(shape)) {
      has_diff_z1_ = true;
      bn1_variant_ = FasterBn1VariantWithFilter(libraries_.autotuner(), *this);
      has_diff_z1_ = false;
    }
  }
  below.block->ChooseConv3DataGradient(*this);
}

void CudaBottleneck::ChooseConv3DataGradient(CudaBottleneck& above) {
  if (!conv3_data_gradient_ || !diff_dst_is_residual()) return;
  conv3_variant_ = FasterConv3DataGradient(libraries_.autotuner(), *this, above);
}

void CudaBottleneck::SetForwardBelow(BlockEnd& below) {
  if (!HasConv1x1Forward(conv1_forward(below))) return;
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
  conv1_.partial_sums = below == nullptr ? 0 : Conv1x1ForwardBlocks(conv1_forward(*below));
  if (below_forward_ != nullptr) below_forward_->is_left = true;
}

std::vector<BottleneckStage*> CudaBottleneck::stages() {
  std::vector<BottleneckStage*> stages = {&conv1_, &conv2_, &conv3_};
  if (shortcut_) stages.push_back(&*shortcut_);
  return stages;
}

std::size_t CudaBottleneck::gradient_sums_bytes(const BottleneckStage& stage) const {
  const std::size_t bytes = stage.convolution->drelu_sums_bytes();
  if (&stage != &conv3_ || conv3_variant_ == Conv3Variant::kSeparate) return bytes;
  const bool is_fused = conv3_variant_ == Conv3Variant::kFused;
  const int blocks = is_fused ? 1 : Conv3DataGradientBlocks(*conv3_data_gradient_);
  return std::max(bytes, FloatBytes(blocks * NormSumsFloats(conv2_.shape)));
}

NormGradientSums CudaBottleneck::gradient_sums(const BottleneckStage& stage) const {
  if (&stage == &conv3_ && conv3_data_is_fused()) {
    return {nullptr, {stage.gradient_sums, Conv3DataGradientBlocks(*conv3_data_gradient_)}};
  }
  const bool is_known = stage.convolution->drelu_sums_bytes() > 0 ||
                        (&stage == &conv3_ && conv3_variant_ == Conv3Variant::kFused);
  return {is_known ? stage.gradient_sums : nullptr, {}};
}

bool CudaBottleneck::needs_mask(const BottleneckStage& stage) const {
  if (&stage == &conv1_) return conv2_.convolution->drelu_sums_bytes() == 0;
  if (&stage == &conv2_) {
    return has_a2_ && (conv3_.convolution->drelu_sums_bytes() == 0 ||
                       conv3_variant_ == Conv3Variant::kFusedDataGradient);
  }
  return true;
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

std::size_t CudaBottleneck::conv1_scratch_bytes() const {
  const std::size_t bytes = conv1_.scratch_bytes();
  if (bn1_variant_ != Bn1Variant::kFusedWithFilter) return bytes;
  return std::max(bytes, FloatBytes(Conv1BackwardWithFilterScratchFloats(conv1_backward(*below_))));
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
  const bool has_diff_z1 = bn1_variant_ == Bn1Variant::kFused || has_diff_z1_;
  reserve("diff_z1", has_diff_z1 ? diff_z1_.desc.bytes : 0, 2, 2, diff_z1_.data);
  reserve("conv1", conv1_scratch_bytes(), 2, 2, conv1_scratch_);
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
    const std::int64_t mask_bytes = needs_mask(*stage) ? NormMaskBytes(stage->shape) : 0;
    reserve(stage->name + ".mask", static_cast<std::size_t>(mask_bytes), forward, backward,
            stage->saved.mask);
  }
  reserve(".a1", a1_.desc.bytes, forward, backward, a1_.data);
  reserve(".a2", has_a2_ ? a2_.desc.bytes : 0, forward, backward, a2_.data);
  if (conv3_variant_ != Conv3Variant::kSeparate) {
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

std::unique_ptr<Bottleneck> MakeCudaBottleneck(CudaLibraries& libraries,
                                               const BottleneckSpec& spec) {
  return std::make_unique<CudaBottleneck>(libraries, spec);
}

}  // namespace trainer
