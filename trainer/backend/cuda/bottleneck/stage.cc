// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/cuda/bottleneck/stage.h"

#include <algorithm>
#include <utility>

#include "trainer/backend/cuda/runtime/timing.h"
#include "trainer/backend/op_work.h"

namespace trainer {

BottleneckStage::BottleneckStage(CudaLibraries& libraries, std::string stage_name,
                                 const ConvolutionSpec& convolution_spec, bool follows_norm,
                                 bool adds, bool relu)
    : name(std::move(stage_name)),
      spec(convolution_spec),
      convolution(libraries.MakeConvolution(spec, {.bn_stats = true, .drelu = follows_norm})) {
  z.desc = convolution->dst();
  norm = {.src = z.desc, .add = adds, .relu = relu};
  shape = NormShapeOf(z.desc);
}

std::size_t BottleneckStage::scratch_bytes() const {
  return std::max(convolution->workspace_bytes(), FloatBytes(NormScratchFloats(shape)));
}

std::size_t BottleneckStage::sums_bytes() const {
  return std::max(convolution->bn_stats_bytes(), FloatBytes(partial_sums * NormSumsFloats(shape)));
}

NormSource BottleneckStage::source(Mode mode) const {
  if (mode != Mode::kTraining || sums_bytes() == 0) return {z.data};
  return {z.data, sums, partial_sums};
}

namespace {

ProfiledOp Describe(Step step, const BottleneckStage& stage, Mode mode) {
  const TensorDesc& dst = stage.z.desc;
  const TensorDesc& filter = stage.convolution->filter();
  const std::string of_convolution = ShapeText(stage.spec, dst.shape);
  const std::string of_norm = ShapeText(stage.norm);
  // Of two batch norms, whose sum goes through the ReLU.
  const auto values = static_cast<double>(dst.shape.elements());
  const double tensor = ValueBytes(dst);
  const std::string of_dual = ShapeText(BatchNormSpec{.src = dst, .relu = true});
  const double of_value = mode == Mode::kTraining ? 4 : 1;  // of one gradient
  // Of the pixels that a convolution with a stride of 2 reads.
  const auto every_second = [](const TensorDesc& src) {
    TensorDesc read = src;
    const Shape& images = src.shape;
    read.shape = {images[0], images[1], (images[2] + 1) / 2, (images[3] + 1) / 2};
    return read;
  };
  // Of the tensor below: what a convolution's gradient does beside itself, in so many batch norms.
  const auto to_norms = [&](double norms) {
    OpWork work = ConvolutionBackwardDataWork(stage.spec, filter, dst);
    work.flop += (4 * norms + 1) * static_cast<double>(stage.spec.src.shape.elements());
    work.bytes += norms * ValueBytes(stage.spec.src);
    return work;
  };
  const auto to_norm_of_stride_2 = [&] {
    OpWork work = to_norms(1);
    work.bytes -= ValueBytes(stage.spec.src) - ValueBytes(every_second(stage.spec.src));
    return work;
  };
  // Makes what it reads of two tensors, and writes it.
  const auto through_norm = [&](OpWork work) {
    work.flop += of_value * values;
    work.bytes += 2 * tensor;
    return work;
  };
  // Makes what it reads, and reads what the convolution has read for the filter's gradient.
  const auto with_filter = [&](OpWork work) {
    work.flop += ConvolutionBackwardFilterWork(stage.spec, filter, dst).flop + of_value * values;
    work.bytes += tensor + ValueBytes(stage.spec.src) + ValueBytes(filter);
    return work;
  };
  // Writes what it reads instead of reading it, after it has been made of two tensors.
  const auto behind_norms = [&](double flop_of_value) {
    OpWork work = ConvolutionForwardWork(stage.spec, filter, dst);
    work.flop += flop_of_value * static_cast<double>(stage.spec.src.shape.elements());
    work.bytes += 2 * ValueBytes(stage.spec.src);
    return work;
  };
  // Reads what the batch norm in front reads.
  const auto behind_own_norm = [&](bool writes) {
    OpWork work = ConvolutionForwardWork(stage.spec, filter, dst);
    work.flop += BatchNormForwardWork({.src = stage.spec.src, .relu = true}, mode).flop;
    if (writes) work.bytes += ValueBytes(stage.spec.src);
    return work;
  };
  const double of_norms[] = {mode == Mode::kTraining ? 7.0 : 4.0,
                             mode == Mode::kTraining ? 12.0 : 6.0};
  switch (step) {
    case Step::kConvolution:
      return {"", "convolution forward", of_convolution,
              ConvolutionForwardWork(stage.spec, filter, dst)};
    case Step::kConvolutionBehindNorm:
      return {"", "convolution forward, with batch norm, addition and ReLU below", of_convolution,
              behind_norms(of_norms[0])};
    case Step::kConvolutionBehindDualNorm:
      return {"", "convolution forward, with batch norm pair and ReLU below", of_convolution,
              behind_norms(of_norms[1])};
    case Step::kConvolutionBehindOwnNorm:
      return {"", "convolution forward, with batch norm and ReLU in front", of_convolution,
              behind_own_norm(/*writes=*/true)};
    case Step::kConvolutionBehindOwnNormUnwritten:
      return {"", "convolution forward, with batch norm and ReLU in front, unwritten",
              of_convolution, behind_own_norm(/*writes=*/false)};
    case Step::kBackwardData:
      return {"", "convolution backward data", of_convolution,
              ConvolutionBackwardDataWork(stage.spec, filter, dst)};
    case Step::kBackwardDataToNorm:
      return {"", "convolution backward data, with ReLU and statistics below", of_convolution,
              to_norms(1)};
    case Step::kBackwardDataToDualNorm:
      return {"", "convolution backward data, with ReLU and statistics of a pair below",
              of_convolution, to_norms(2)};
    case Step::kBackwardDataToNormOfStride2:
      return {"", "convolution backward data, with ReLU and statistics below", of_convolution,
              to_norm_of_stride_2()};
    case Step::kNormBackwardDataToNorm:
      return {"", "batch norm and convolution backward data, with ReLU and statistics below",
              of_convolution, through_norm(to_norms(1))};
    case Step::kNormBackwardDataToDualNorm:
      return {"",
              "batch norm and convolution backward data, with ReLU and statistics of a pair below",
              of_convolution, through_norm(to_norms(2))};
    case Step::kNormBackwardDataToNormOfStride2:
      return {"", "batch norm and convolution backward data, with ReLU and statistics below",
              of_convolution, through_norm(to_norm_of_stride_2())};
    case Step::kConv1BackwardToNorm:
      return {"", "convolution backward, with batch norm, and ReLU and statistics below",
              of_convolution, with_filter(to_norms(1))};
    case Step::kConv1BackwardToDualNorm:
      return {"", "convolution backward, with batch norm, and ReLU and statistics of a pair below",
              of_convolution, with_filter(to_norms(2))};
    case Step::kConv1BackwardToNormOfStride2:
      return {"", "convolution backward, with batch norm, and ReLU and statistics below",
              of_convolution, with_filter(to_norm_of_stride_2())};
    case Step::kBackwardDataCompact: {
      ConvolutionSpec spec = stage.spec;
      spec.src = every_second(spec.src);
      spec.stride = 1;
      return {"", "convolution backward data, of pixels that were read", of_convolution,
              ConvolutionBackwardDataWork(spec, filter, dst)};
    }
    case Step::kBackwardFilter:
      return {"", "convolution backward filter", of_convolution,
              ConvolutionBackwardFilterWork(stage.spec, filter, dst)};
    case Step::kNorm:
      return {"", "batch norm forward", of_norm, BatchNormForwardWork(stage.norm, mode)};
    case Step::kNormBackward:
      return {"", "batch norm backward", of_norm, BatchNormBackwardWork(stage.norm, mode)};
    case Step::kNormBackwardStats:  // 4 for the sums, 1 for the ReLU; reads z and the gradient
      return {"", "batch norm backward statistics", of_norm, {5 * values, 2 * tensor}};
    case Step::kDualNorm:
      return {"", "batch norm pair forward", of_dual, {of_norms[1] * values, 3 * tensor}};
    case Step::kDualNormBackward:  // reads both z, the gradient and dst; writes two gradients
      return {
          "", "batch norm pair backward", of_dual, {(2 * (4 + of_value) + 1) * values, 6 * tensor}};
    case Step::kDualNormBackwardButFirst:
      return {"",
              "batch norm pair backward, but for one gradient",
              of_dual,
              {(2 * 4 + of_value + 1) * values, 5 * tensor}};
    case Step::kNormBackwardRest:
      return {"",
              "batch norm backward, but for its statistics",
              of_norm,
              {of_value * values, 3 * tensor}};
    case Step::kNormBackwardCoefficients:  // of channels alone
      return {"", "batch norm backward coefficients", of_norm, {}};
    case Step::kDualNormBackwardRest:
      return {"",
              "batch norm pair backward, but for its statistics",
              of_dual,
              {2 * of_value * values, 5 * tensor}};
    case Step::kDualNormBackwardRestButFirst:
      return {"",
              "batch norm pair backward, but for its statistics and one gradient",
              of_dual,
              {of_value * values, 3 * tensor}};
    case Step::kConv3BackwardData: {
      OpWork work = through_norm(ConvolutionBackwardDataWork(stage.spec, filter, dst));
      work.flop += 5 * static_cast<double>(stage.spec.src.shape.elements());
      work.bytes += ValueBytes(stage.spec.src);
      return {"", "convolution backward data, between batch norms", of_convolution, work};
    }
    case Step::kConv3Backward:
      // Both gradients; 4 for each value of dst's gradient and 1 for the ReLU, for each of src 6.
      // Reads what both batch norms have read, the gradient and the filter; writes the gradients of
      // src and filter.  That of the residual is left out: only some have one.
      return {"",
              "convolution backward, with batch norms",
              of_convolution,
              {2 * ConvolutionForwardWork(stage.spec, filter, dst).flop + 5 * values +
                   6 * static_cast<double>(stage.spec.src.shape.elements()),
               2 * (ValueBytes(stage.spec.src) + ValueBytes(filter) + tensor)}};
  }
  return {};
}

}  // namespace

int StepRecorder::NumberOf(Step step, const BottleneckStage& stage, Mode mode) {
  const auto [number, is_new] = numbers_.try_emplace({step, &stage, mode}, 0);
  if (is_new) number->second = recorder_->Add(Describe(step, stage, mode));
  return number->second;
}

}  // namespace trainer
