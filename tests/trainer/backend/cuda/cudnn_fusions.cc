// SPDX-License-Identifier: Apache-2.0

#include "tests/trainer/backend/cuda/cudnn_fusions.h"

#include <numeric>
#include <optional>
#include <utility>

namespace trainer {

std::string NameOf(Fusion fusion) {
  switch (fusion) {
    case Fusion::kForwardBehindNorm:
      return "norm, addition, ReLU, convolution, sums";
    case Fusion::kForwardBehindDualNorm:
      return "norm pair, ReLU, convolution, sums";
    case Fusion::kBackwardToNorm:
      return "data gradient, addition, ReLU, sums";
    case Fusion::kBackwardToDualNorm:
      break;
  }
  return "data gradient, addition, ReLU, sums of a pair";
}

std::vector<FusedConvolution> ConvolutionsOfResNet50(Fusion fusion, std::int64_t images) {
  std::vector<FusedConvolution> all;
  std::int64_t channels = 64;
  std::int64_t size = 56;
  for (std::int64_t width = 64; width <= 512; width *= 2) {
    const auto add = [&](std::int64_t from, std::int64_t to) {
      all.push_back({fusion, DType::kFloat16, images, size, from, to});
    };
    add(channels, width);
    if (width > 64) size /= 2;
    channels = 4 * width;
    add(width, channels);
    add(channels, width);
  }
  return all;
}

FusionGraph::FusionGraph(const FusedConvolution& of) : of_(of) {
  const bool is_dual =
      of.fusion == Fusion::kForwardBehindDualNorm || of.fusion == Fusion::kBackwardToDualNorm;
  if (of.fusion == Fusion::kForwardBehindNorm || of.fusion == Fusion::kForwardBehindDualNorm) {
    AppendForward(is_dual);
  } else {
    AppendBackward(is_dual);
  }
}

std::size_t FusionGraph::bytes() const {
  return std::accumulate(tensor_bytes_.begin(), tensor_bytes_.end(), std::size_t{0});
}

CudnnDescriptor FusionGraph::InMemory(DType dtype, const TensorShape& shape) {
  const auto count =
      static_cast<std::size_t>(shape.outer * shape.channels * shape.height * shape.width);
  tensor_bytes_.push_back(count * SizeOf(dtype));
  return MakeTensor(static_cast<std::int64_t>(tensor_bytes_.size()), dtype, shape);
}

CudnnDescriptor FusionGraph::Images(std::int64_t channels) {
  return InMemory(of_.dtype, {of_.images, channels, of_.size, of_.size});
}

CudnnDescriptor FusionGraph::Vector(std::int64_t channels, DType dtype) {
  return InMemory(dtype, {.channels = channels});
}

CudnnDescriptor FusionGraph::Virtual() {
  constexpr std::int64_t kFirst = 1000;  // above those in memory
  return MakeTensor(kFirst + virtuals_++, DType::kFloat32,
                    {of_.images, of_.channels, of_.size, of_.size}, /*is_virtual=*/true);
}

CudnnDescriptor FusionGraph::Filter() {
  return InMemory(of_.dtype, {.outer = of_.filters, .channels = of_.channels});
}

NormTensors FusionGraph::Norm() {
  const auto vector = [&] { return Vector(of_.channels, DType::kFloat32); };
  return {Images(of_.channels), vector(), vector(), vector(), vector()};
}

CudnnDescriptor FusionGraph::Append(cudnnPointwiseMode_t mode, const CudnnDescriptor& a,
                                    const CudnnDescriptor& b) {
  CudnnDescriptor dst = Virtual();
  operations_.push_back(MakePointwise(mode, a, b, dst));
  return dst;
}

// Scale and bias are of the type of the images: cuDNN 9.19 has no engine for fp32 ones.
CudnnDescriptor FusionGraph::AppendScaleBias(const CudnnDescriptor& src) {
  const CudnnDescriptor scale = Vector(of_.channels, of_.dtype);
  const CudnnDescriptor bias = Vector(of_.channels, of_.dtype);
  return Append(CUDNN_POINTWISE_ADD, Append(CUDNN_POINTWISE_MUL, src, scale), bias);
}

void FusionGraph::AppendForward(bool is_dual) {
  const CudnnDescriptor norm = AppendScaleBias(Images(of_.channels));
  const CudnnDescriptor other = Images(of_.channels);
  const CudnnDescriptor sum = is_dual ? Append(CUDNN_POINTWISE_ADD, norm, AppendScaleBias(other))
                                      : Append(CUDNN_POINTWISE_ADD, norm, other);
  const CudnnDescriptor src = Images(of_.channels);
  operations_.push_back(MakeRelu(sum, src));
  const CudnnDescriptor filter = Filter();
  const CudnnDescriptor dst = Images(of_.filters);
  operations_.push_back(MakeConvolution(ConvolutionPass::kForward, 1, 0, {src, filter, dst}));
  operations_.push_back(MakeGenStats(dst, Vector(of_.filters, DType::kFloat32),
                                     Vector(of_.filters, DType::kFloat32)));
}

// In the four steps that the engines want.
CudnnDescriptor FusionGraph::AppendNorm(const NormTensors& norm) {
  const CudnnDescriptor centered = Append(CUDNN_POINTWISE_SUB, norm.src, norm.mean);
  const CudnnDescriptor normalized = Append(CUDNN_POINTWISE_MUL, centered, norm.inverse);
  return Append(CUDNN_POINTWISE_ADD, Append(CUDNN_POINTWISE_MUL, normalized, norm.scale),
                norm.shift);
}

void FusionGraph::AppendBnBackwardWeights(const NormTensors& norm,
                                          const CudnnDescriptor& diff_dst) {
  const auto vector = [&] { return Vector(of_.channels, DType::kFloat32); };
  operations_.push_back(
      MakeBnBackwardWeights(norm, diff_dst, {vector(), vector(), vector(), vector(), vector()}));
}

void FusionGraph::AppendBackward(bool is_dual) {
  const CudnnDescriptor product = Virtual();
  const CudnnDescriptor filter = Filter();
  const CudnnDescriptor diff_dst = Images(of_.filters);
  operations_.push_back(
      MakeConvolution(ConvolutionPass::kBackwardData, 1, 0, {product, filter, diff_dst}));
  const CudnnDescriptor gradient =
      Append(CUDNN_POINTWISE_ADD, product, Images(of_.channels));  // the shortcut's
  const NormTensors norm = Norm();
  const CudnnDescriptor normalized = AppendNorm(norm);
  std::optional<NormTensors> second;
  if (is_dual) second.emplace(Norm());
  const CudnnDescriptor relu_src =
      Append(CUDNN_POINTWISE_ADD, normalized, second ? AppendNorm(*second) : Images(of_.channels));
  const CudnnDescriptor diff_src = Images(of_.channels);
  operations_.push_back(MakeReluBackward(relu_src, gradient, diff_src));
  AppendBnBackwardWeights(norm, diff_src);
  if (second) AppendBnBackwardWeights(*second, diff_src);
}

}  // namespace trainer
