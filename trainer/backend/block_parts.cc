// SPDX-License-Identifier: Apache-2.0

#include "trainer/backend/block_parts.h"

#include "trainer/core/error.h"

namespace trainer {
namespace {

BatchNormSpec NormSpec(const TensorDesc& src, const ConvolutionNorm::Spec& spec) {
  BatchNormSpec norm;
  norm.src = src;
  norm.add = spec.add;
  norm.relu = spec.relu;
  return norm;
}

}  // namespace

void AppendConvolutionNormParameters(const std::string& convolution, const std::string& norm,
                                     const TensorDesc& filter,
                                     std::vector<ParameterSpec>& parameters) {
  const Shape channels{filter.shape[0]};
  const TensorDesc per_channel = RowMajor(channels, DType::kFloat32);
  parameters.push_back(
      {convolution + ".weight", filter.shape, filter, Init::kVarianceScaling, true, false});
  parameters.push_back({norm + ".weight", channels, per_channel, Init::kOnes, false, false});
  parameters.push_back({norm + ".bias", channels, per_channel, Init::kZeros, false, false});
  parameters.push_back({norm + ".running_mean", channels, per_channel, Init::kZeros, false, true});
  parameters.push_back({norm + ".running_var", channels, per_channel, Init::kOnes, false, true});
}

ConvolutionNorm::ConvolutionNorm(Backend& backend, const Spec& spec)
    : convolution_(backend.MakeConvolution(spec.convolution)),
      norm_(backend.MakeBatchNorm(NormSpec(convolution_->dst(), spec))) {}

void ConvolutionNorm::Reserve(const BlockTimes& times, const std::string& name,
                              MemoryPlanner& plan) {
  const auto [forward, backward] = times;
  convolved_id_ = plan.Reserve(name + ".convolved", convolution_->dst().bytes, forward, backward);
  saved_id_ = plan.Reserve(name + ".saved", norm_->saved_bytes(), forward, backward);
}

void ConvolutionNorm::Bind(const MemoryPlanner& plan, std::byte* arena,
                           std::span<const ParameterBinding> bindings) {
  DDL_CHECK(bindings.size() == kConvolutionNormParameters);
  convolved_ = TensorAt(convolution_->dst(), plan, convolved_id_, arena);
  saved_ = arena + plan.offset(saved_id_);
  filter_ = bindings[0];
  parameters_ = {bindings[1].value, bindings[2].value, bindings[3].value, bindings[4].value};
  diff_scale_ = bindings[1].gradient;
  diff_shift_ = bindings[2].gradient;
}

void ConvolutionNorm::Forward(Mode mode, const Tensor& src, const Tensor& residual,
                              const Tensor& dst, void* workspace, Stream& stream) {
  convolution_->Forward(src, filter_.value, convolved_, workspace, stream);
  norm_->Forward(mode, convolved_, residual, parameters_, dst, saved_, workspace, stream);
}

void ConvolutionNorm::Backward(Mode mode, const Tensor& src, const Tensor& dst,
                               const Tensor& diff_dst, const Gradients& gradients, void* workspace,
                               Stream& stream) {
  const Tensor& diff_convolved = gradients.convolved;
  norm_->Backward(mode, convolved_, dst, diff_dst, parameters_, saved_, diff_convolved,
                  gradients.residual, diff_scale_, diff_shift_, workspace, stream);
  convolution_->BackwardFilter(src, diff_convolved, filter_.gradient, workspace, stream);
  if (!gradients.src) return;
  convolution_->BackwardData(diff_convolved, filter_.value, gradients.src, workspace, stream);
}

}  // namespace trainer
