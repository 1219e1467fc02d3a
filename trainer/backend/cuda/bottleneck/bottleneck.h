// SPDX-License-Identifier: Apache-2.0
//
// ResNet's bottleneck (blocks.h) on a GPU: one order of kernels forward and one backward, with all
// that is fused.  z: what a convolution gives, a: what its batch norm makes of it.
//
//   forward                                   reads       writes
//   conv1, statistics of z1                   src         z1
//   bn1, ReLU                                 z1          a1, mask
//   conv2, statistics of z2                   a1          z2
//   bn2, ReLU                                 z2          a2, mask
//   conv3, statistics of z3                   a2          z3
// or the last two by one kernel, as Conv3Variant::kFused has it (without a2 and the mask where
// backward has one kernel, too, which computes both again from z2),
//   bn2, ReLU; conv3, statistics of z3        z2          a2, mask, z3
// then
//   bn3, + src, ReLU                          z3, src     dst, mask
// or, where the shortcut has a convolution,
//   its convolution, statistics of zs         src         zs
//   bn3 + its batch norm, ReLU                z3, zs      dst, mask
// The last of them is left to the block above, as Conv1Variant::kFused has it, which does
//   bn3, + src, ReLU below; conv1, its        z3, src     dst, mask below; z1
//     statistics                              (or zs) below
// by one kernel.  dst is there for all that follows.
//
//   backward, d: gradient of                  reads                 writes
//   bn3 (and the shortcut's), ReLU            d dst, mask, z3, zs   d z3, d src or d zs
//   conv3 filter                              a2, d z3              gradient
//   conv3 data, bn2's ReLU, its statistics    d z3, z2              d a2
// or with the data gradient in one kernel, as Conv3Variant::kFusedDataGradient has it, where d dst
// comes behind the ReLU with its statistics, and is the residual's gradient as well,
//   bn3, conv3 data, bn2's ReLU, ...          d dst, z3, z2         d z3, d a2
//   conv3 filter                              a2, d z3              gradient
// or by one kernel, as Conv3Variant::kFused has it,
//   statistics of bn3 (and the shortcut's)    d dst, mask, z3, zs   coefficients, d zs
//   the rest of bn3, conv3, bn2's ReLU        d dst, mask, z3, z2   d a2, gradient, d src
// then
//   the shortcut's convolution                src, d zs             gradient, d src
//   bn2                                       d a2, z2              d z2, in its place
//   conv2 filter, data, bn1's ReLU ...        a1, d z2, z1          gradient, d a1
//   bn1                                       d a1, z1              d z1, in its place
//   conv1 filter, data                        src, d z1             gradient, d src added to
//
// or by one kernel, as Conv1Variant::kFused has it, on through the end of the block below,
//   conv1 filter                              src, d z1             gradient
//   conv1 data, + d src, the ReLU below,      d z1, d src, mask,    d dst of the block below,
//     sums for bn3 (and the shortcut's) there z3, zs below          behind its ReLU; sums
// (a shortcut with a stride of 2 has given d src of the pixels that it has read alone), or with bn1
// in front, as Bn1Variant::kFused has it,
//   bn1, conv1 data, + d src, the ReLU ...    d a1, z1 as well      d z1, of its own, as well
//   conv1 filter                              src, d z1             gradient
// or the last two by one kernel, as Bn1Variant::kFusedWithFilter has it, which has the ReLU below
// from src,
//   bn1, conv1, + d src, the ReLU ...         d a1, z1, src, ...    gradient, d dst below; sums
// so that there
//   bn3 (and the shortcut's)                  d dst, z3, zs         d z3, d zs
// has no pass of sums; d dst is the residual's gradient too, and is read where it is.
//
// Statistics in the epilogue of a convolution, and backward the ReLU before it, are there where the
// convolution has them (CudaConvolution); else batch norm has a pass more.  Where the ReLU is
// there, by z1 and z2, bn1 and bn2 write no mask.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/backend/block_parts.h"
#include "trainer/backend/blocks.h"
#include "trainer/backend/cuda/bottleneck/block_end.h"
#include "trainer/backend/cuda/bottleneck/conv1_backward.h"
#include "trainer/backend/cuda/bottleneck/conv1_backward_with_filter.h"
#include "trainer/backend/cuda/bottleneck/conv1x1_forward.h"
#include "trainer/backend/cuda/bottleneck/conv3_backward.h"
#include "trainer/backend/cuda/bottleneck/conv3_data_gradient.h"
#include "trainer/backend/cuda/bottleneck/stage.h"
#include "trainer/backend/cuda/libraries/cuda_libraries.h"

namespace trainer {

enum class Conv1Variant : std::uint8_t { kFused, kSeparate };
enum class Conv3Variant : std::uint8_t { kFused, kSeparate, kFusedDataGradient };
enum class Bn1Variant : std::uint8_t { kFused, kSeparate, kFusedWithFilter };  // backward

class CudaBottleneck final : public Bottleneck {
 public:
  CudaBottleneck(CudaLibraries& libraries, const BottleneckSpec& spec);

  const std::vector<ParameterSpec>& parameters() const override { return parameters_; }
  const TensorDesc& src() const { return conv1_.spec.src; }
  const TensorDesc& dst() const override { return conv3_.z.desc; }
  void set_recorder(OpRecorder* recorder) override { steps_.set_recorder(recorder); }

  void Reserve(const BlockTimes& times, const std::string& name, MemoryPlanner& plan) override;
  void Bind(const MemoryPlanner& plan, std::byte* arena,
            std::vector<ParameterBinding> bindings) override;

  BlockEnd* end() override { return &end_; }
  void set_below(BlockEnd* below) override;

  void Forward(Mode mode, const Tensor& src, const Tensor& dst, Stream& stream) override;
  void Backward(Mode mode, const Tensor& src, const Tensor& dst, const Tensor& diff_dst,
                const Tensor& diff_src, Stream& stream) override;

  bool is_dual() const { return shortcut_.has_value(); }
  Conv3Variant conv3_variant() const { return conv3_variant_; }  // backward
  Conv3Variant conv3_forward_variant() const {
    return conv3_.partial_sums > 0 ? Conv3Variant::kFused : Conv3Variant::kSeparate;
  }
  const Conv1x1ForwardShape& conv3_forward() const { return conv3_forward_; }
  // Whether anything reads what bn2 gives.
  bool needs_a2() const {
    return conv3_variant_ != Conv3Variant::kFused ||
           conv3_forward_variant() == Conv3Variant::kSeparate;
  }
  Conv1Variant conv1_variant() const {
    return below_ == nullptr ? Conv1Variant::kSeparate : Conv1Variant::kFused;
  }
  // The end that conv1's gradient goes through; null: none.
  BlockEnd* below() const { return below_; }
  Conv1BackwardShape conv1_backward(const BlockEnd& below) const;
  Bn1Variant bn1_variant() const { return bn1_variant_; }
  // The same forward: the end that conv1 does together with itself.
  Conv1Variant conv1_forward_variant() const {
    return below_forward_ == nullptr ? Conv1Variant::kSeparate : Conv1Variant::kFused;
  }
  BlockEnd* below_forward() const { return below_forward_; }
  Conv1x1ForwardShape conv1_forward(const BlockEnd& below) const;

  // Null: no kernel; else what is of use once the block above leaves the gradient behind the ReLU.
  const Conv3DataGradientShape* conv3_data_gradient() const {
    return conv3_data_gradient_ ? &*conv3_data_gradient_ : nullptr;
  }

  // For autotuning.  But for kSeparate REQUIRES that the block was reserved with it, and a kernel.
  void set_conv3_variant(Conv3Variant variant) { conv3_variant_ = variant; }
  // The same.  kSeparate REQUIRES that the block was made or reserved with it.
  void set_conv3_forward_variant(Conv3Variant variant);
  // The same: `below` REQUIRES that its block was reserved with it, and a kernel; or null.
  void GoThrough(BlockEnd* below);
  void TakeEnd(BlockEnd* below);  // forward
  // But for kSeparate REQUIRES the same, and that the block is above another.
  void set_bn1_variant(Bn1Variant variant) { bn1_variant_ = variant; }

 private:
  std::vector<BottleneckStage*> stages();
  // Of the gradient of what the stage reads, for the batch norm before it; 0, none: not given.
  std::size_t gradient_sums_bytes(const BottleneckStage& stage) const;
  NormGradientSums gradient_sums(const BottleneckStage& stage) const;
  // Whether backward reads where its ReLU passes; not where the data gradient that comes there is
  // behind the ReLU already.
  bool needs_mask(const BottleneckStage& stage) const;
  std::uint8_t* mask(const BottleneckStage& stage) const {
    return needs_mask(stage) ? stage.saved.mask : nullptr;
  }
  std::size_t end_scratch_bytes() const;
  std::size_t conv1_scratch_bytes() const;
  // Whether the gradient of the shortcut's convolution is one of those pixels alone that it has
  // read.
  bool is_compact() const { return below_ != nullptr && conv1_backward(*below_).stride == 2; }
  bool end_comes_summed() const { return end_.partial_blocks > 0; }
  NormPartialSums end_sums(const Conv1Backward::Norm& norm) const {
    return {end_comes_summed() ? norm.partial : nullptr, end_.partial_blocks};
  }
  // Behind its ReLU diff_dst is the gradient of src as the residual: conv1's kernel reads it there.
  bool diff_dst_is_residual() const {
    return end_comes_summed() && below_ != nullptr && !shortcut_;
  }
  // Conv3Variant::kFusedDataGradient is of use.
  bool conv3_data_is_fused() const {
    return conv3_variant_ == Conv3Variant::kFusedDataGradient && diff_dst_is_residual();
  }
  void SetBackwardBelow(BlockEnd& below);
  void SetForwardBelow(BlockEnd& below);
  // Where the gradient that `above` leaves can go through bn3 in front of conv3's.
  void ChooseConv3DataGradient(CudaBottleneck& above);
  void PlanBackward();
  void BindEnd();

  NormsForward EndForward(Mode mode, const Tensor& src, const Tensor& dst) const;
  void ConvolveWithEnd(Mode mode, const Tensor& src, Stream& stream);
  void ConvolveWithNorm(Mode mode, Stream& stream);
  void Convolve(const BottleneckStage& stage, Mode mode, const Tensor& x, Stream& stream);
  void Normalize(const BottleneckStage& stage, Mode mode, const void* residual, const Tensor& dst,
                 Stream& stream);
  void NormalizeDual(Mode mode, const Tensor& dst, Stream& stream);

  // What gives d a2 out of diff_dst, and conv3's gradient.
  void BackwardEnd(Mode mode, const Tensor& diff_dst, const Tensor& diff_zs, void* diff_residual,
                   Stream& stream);
  void BackwardConv3Fused(Mode mode, const Tensor& diff_dst, void* diff_residual, Stream& stream);
  void BackwardConv3Data(Mode mode, const Tensor& diff_dst, Stream& stream);
  void BackwardNorm(const BottleneckStage& stage, Mode mode, const Tensor& diff_a,
                    const NormGradientSums& sums, const Tensor& diff_z, void* diff_residual,
                    void* scratch, Stream& stream);
  void BackwardNormStats(Mode mode, const Tensor& diff_dst, Stream& stream);
  // Without diff_z3 its coefficients.
  void BackwardDualNorm(Mode mode, const Tensor& diff_dst, const Tensor& diff_z3,
                        const Tensor& diff_zs, Stream& stream);
  void BackwardFilter(const BottleneckStage& stage, Mode mode, const Tensor& x,
                      const Tensor& diff_z, void* scratch, Stream& stream);
  // `before` is the stage before, if there is one.
  void BackwardData(const BottleneckStage& stage, const BottleneckStage* before, Mode mode,
                    const Tensor& diff_z, const Tensor& diff_x, void* scratch, Stream& stream);
  void BackwardShortcut(Mode mode, const Tensor& src, const Tensor& diff_zs, const Tensor& diff_src,
                        Stream& stream);
  // What is left when d a1 is there: bn1 and conv1.  `residual`: d src to add to, with `below_`.
  void BackwardConv1(Mode mode, const Tensor& src, const void* residual, const Tensor& diff_src,
                     Stream& stream);
  void BackwardConv1Fused(Mode mode, const Tensor& src, const void* residual,
                          const Tensor& diff_src, Stream& stream);
  NormBackwardFront FrontOfConv1(Mode mode) const;

  BottleneckStage conv1_, conv2_, conv3_;
  std::optional<BottleneckStage> shortcut_;
  // The shortcut's with a stride of 1, on those pixels that it has read; null until there may be
  // use for it.
  std::unique_ptr<CudaConvolution> compact_shortcut_;
  Conv1x1ForwardShape conv1_forward_;  // but for what is below
  Conv1x1ForwardShape conv3_forward_;
  Conv1BackwardShape conv1_backward_;                          // the same
  std::optional<Conv3BackwardShape> conv3_backward_;           // none: there is no such kernel
  std::optional<Conv3DataGradientShape> conv3_data_gradient_;  // the same
  Conv3Variant conv3_variant_ = Conv3Variant::kSeparate;
  bool has_a2_ = true;  // memory for it; as long as variants may change, there is
  Bn1Variant bn1_variant_ = Bn1Variant::kSeparate;
  bool has_diff_z1_ = false;  // memory for it, whichever the variant: while that may change
  CudaLibraries& libraries_;
  BlockEnd end_;
  BlockEnd* below_ = nullptr;
  BlockEnd* below_forward_ = nullptr;
  std::vector<ParameterSpec> parameters_;
  StepRecorder steps_;

  // Memory.  What backward needs for itself is a plan of its own, on a clock of its own: what its
  // parts do not need at once shares bytes.
  Pieces pieces_, backward_pieces_;
  MemoryPlanner backward_plan_;
  Tensor a1_, a2_, diff_z3_, diff_a2_, diff_a1_, diff_z1_, diff_compact_;
  float* coefficients_ = nullptr;  // of bn3, for a kernel of conv3
  void* forward_scratch_ = nullptr;
  void* end_scratch_ = nullptr;
  void* conv2_scratch_ = nullptr;
  void* conv1_scratch_ = nullptr;
  std::byte* backward_memory_ = nullptr;
};

std::unique_ptr<Bottleneck> MakeCudaBottleneck(CudaLibraries& libraries,
                                               const BottleneckSpec& spec);

}  // namespace trainer
