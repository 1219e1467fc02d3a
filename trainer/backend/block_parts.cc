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

KeptConvolution::KeptConvolution(Backend& backend, const ConvolutionSpec& spec) {
  ConvolutionSpec with_bn_stats = spec;
  with_bn_stats.wants_bn_stats = true;
  convolution_ = backend.MakeConvolution(with_bn_stats);
}

void KeptConvolution::Reserve(const BlockTimes& times, const std::string& name,
                              MemoryPlanner& plan) {
  kept_id_ = plan.Reserve(name + ".convolved", dst().bytes, times.forward, times.backward);
  const std::size_t sums = convolution_->bn_stats_bytes();
  if (sums > 0) bn_stats_id_ = plan.Reserve(name + ".sums", sums, times.forward, times.forward);
  const std::size_t gradient_sums = convolution_->bn_backward_stats_bytes();
  if (gradient_sums == 0) return;
  bn_backward_stats_id_ =
      plan.Reserve(name + ".gradient_sums", gradient_sums, times.backward, times.backward);
}

void KeptConvolution::Bind(const MemoryPlanner& plan, std::byte* arena,
                           std::span<const ParameterBinding> bindings) {
  DDL_CHECK(bindings.size() == kParameters);
  kept_ = TensorAt(dst(), plan, kept_id_, arena);
  if (bn_stats_id_ >= 0) sums_ = arena + plan.offset(bn_stats_id_);
  if (bn_backward_stats_id_ >= 0) gradient_sums_ = arena + plan.offset(bn_backward_stats_id_);
  filter_ = bindings[0];
  norm_ = {bindings[1].value, bindings[2].value, bindings[3].value, bindings[4].value};
  diff_scale_ = bindings[1].gradient;
  diff_shift_ = bindings[2].gradient;
}

void KeptConvolution::Forward(Mode mode, const Tensor& src, void* workspace, Stream& stream) {
  if (mode == Mode::kTraining && sums_ != nullptr) {
    convolution_->ForwardWithBnStats(src, filter_.value, kept_, sums_, workspace, stream);
  } else {
    convolution_->Forward(src, filter_.value, kept_, workspace, stream);
  }
}

void KeptConvolution::Backward(const Tensor& src, const Tensor& diff_kept,
                               const SrcGradient& diff_src, void* workspace, Stream& stream) {
  convolution_->BackwardFilter(src, diff_kept, filter_.gradient, workspace, stream);
  if (!diff_src.values) return;
  if (gradient_sums_ != nullptr) {
    DDL_CHECK(diff_src.before.saved != nullptr);
    convolution_->BackwardDataDreluBnStats(diff_kept, filter_.value, diff_src.before,
                                           diff_src.values, gradient_sums_, workspace, stream);
  } else {
    convolution_->BackwardData(diff_kept, filter_.value, diff_src.values, workspace, stream);
  }
}

void KeptConvolution::BackwardWithBnApply(const GradientBeforeBnBackward& diff_kept,
                                          const SrcGradient& diff_src, void* workspace,
                                          Stream& stream) {
  convolution_->BackwardWithBnApply(diff_kept, filter_.value, diff_src.before, filter_.gradient,
                                    diff_src.values, gradient_sums_, workspace, stream);
}

ConvolutionNorm::ConvolutionNorm(Backend& backend, const Spec& spec)
    : convolution_(backend, spec.convolution),
      norm_(backend.MakeBatchNorm(NormSpec(convolution_.dst(), spec))) {}

void ConvolutionNorm::Reserve(const BlockTimes& times, const std::string& name,
                              MemoryPlanner& plan) {
  convolution_.Reserve(times, name, plan);
  saved_id_ = plan.Reserve(name + ".saved", norm_->saved_bytes(), times.forward, times.backward);
  if (!convolution_.applies_norm_backward()) return;
  coefficients_id_ = plan.Reserve(name + ".coefficients", norm_->coefficients_bytes(),
                                  times.backward, times.backward);
}

void ConvolutionNorm::Bind(const MemoryPlanner& plan, std::byte* arena,
                           std::span<const ParameterBinding> bindings) {
  convolution_.Bind(plan, arena, bindings);
  saved_ = arena + plan.offset(saved_id_);
  if (coefficients_id_ >= 0) coefficients_ = arena + plan.offset(coefficients_id_);
}

void ConvolutionNorm::Forward(Mode mode, const Tensor& src, const Tensor& residual,
                              const Tensor& dst, void* workspace, Stream& stream) {
  convolution_.Forward(mode, src, workspace, stream);
  norm_->Forward(mode, convolution_.summed(mode), residual, convolution_.norm(), dst, saved_,
                 workspace, stream);
}

void ConvolutionNorm::Backward(Mode mode, const Tensor& src, const Tensor& dst,
                               const TensorWithBnStats& diff_dst, const Gradients& gradients,
                               void* workspace, Stream& stream) {
  if (coefficients_ != nullptr) {
    const GradientBeforeBnBackward stats_only = norm_->BackwardStatsOnly(
        mode, convolution_.kept(), diff_dst.values, convolution_.norm(), saved_, gradients.residual,
        convolution_.diff_scale(), convolution_.diff_shift(), coefficients_, workspace, stream);
    convolution_.BackwardWithBnApply(stats_only, gradients.src, workspace, stream);
    return;
  }
  if (diff_dst.sums != nullptr) {
    norm_->BackwardWithBnStats(mode, convolution_.kept(), diff_dst, convolution_.norm(), saved_,
                               gradients.convolved, convolution_.diff_scale(),
                               convolution_.diff_shift(), workspace, stream);
  } else {
    norm_->Backward(mode, convolution_.kept(), dst, diff_dst.values, convolution_.norm(), saved_,
                    gradients.convolved, gradients.residual, convolution_.diff_scale(),
                    convolution_.diff_shift(), workspace, stream);
  }
  convolution_.Backward(src, gradients.convolved, gradients.src, workspace, stream);
}

ConvolutionDualNorm::ConvolutionDualNorm(Backend& backend, const ConvolutionSpec& first,
                                         const ConvolutionSpec& second)
    : first_(backend, first),
      second_(backend, second),
      norms_(backend.MakeDualBatchNorm({first_.dst()})) {}

void ConvolutionDualNorm::Reserve(const BlockTimes& times, const std::string& first,
                                  const std::string& second, MemoryPlanner& plan) {
  first_.Reserve(times, first, plan);
  second_.Reserve(times, second, plan);
  saved_id_ = plan.Reserve(first + ".saved", norms_->saved_bytes(), times.forward, times.backward);
  if (!first_.applies_norm_backward()) return;
  coefficients_id_ = plan.Reserve(first + ".coefficients", norms_->coefficients_bytes(),
                                  times.backward, times.backward);
}

void ConvolutionDualNorm::Bind(const MemoryPlanner& plan, std::byte* arena,
                               std::span<const ParameterBinding> bindings) {
  DDL_CHECK(bindings.size() == kParameters);
  first_.Bind(plan, arena, bindings.first(KeptConvolution::kParameters));
  second_.Bind(plan, arena, bindings.last(KeptConvolution::kParameters));
  saved_ = arena + plan.offset(saved_id_);
  if (coefficients_id_ >= 0) coefficients_ = arena + plan.offset(coefficients_id_);
}

void ConvolutionDualNorm::Forward(Mode mode, const Tensor& first_src, const Tensor& second_src,
                                  const Tensor& dst, void* workspace, Stream& stream) {
  first_.Forward(mode, first_src, workspace, stream);
  second_.Forward(mode, second_src, workspace, stream);
  norms_->Forward(mode, {first_.summed(mode), first_.norm()},
                  {second_.summed(mode), second_.norm()}, dst, saved_, workspace, stream);
}

void ConvolutionDualNorm::Backward(Mode mode, const Tensor& first_src, const Tensor& second_src,
                                   const Tensor& dst, const Tensor& diff_dst,
                                   const Gradients& first, const Gradients& second, void* workspace,
                                   Stream& stream) {
  const DualBatchNorm::Operand of_first = {{first_.kept()}, first_.norm()};
  const DualBatchNorm::Operand of_second = {{second_.kept()}, second_.norm()};
  if (coefficients_ != nullptr) {
    // diff_dst is still needed when the second one's gradient is written.
    const Tensor& diff_second = first.convolved;
    const GradientBeforeBnBackward stats_only = norms_->BackwardFirstStatsOnly(
        mode, of_first, of_second, diff_dst, saved_, {{}, first_.diff_scale(), first_.diff_shift()},
        {diff_second, second_.diff_scale(), second_.diff_shift()}, coefficients_, workspace,
        stream);
    first_.BackwardWithBnApply(stats_only, first.src, workspace, stream);
    second_.Backward(second_src, diff_second, second.src, workspace, stream);
    return;
  }
  norms_->Backward(mode, of_first, of_second, dst, diff_dst, saved_,
                   {first.convolved, first_.diff_scale(), first_.diff_shift()},
                   {second.convolved, second_.diff_scale(), second_.diff_shift()}, workspace,
                   stream);
  first_.Backward(first_src, first.convolved, first.src, workspace, stream);
  second_.Backward(second_src, second.convolved, second.src, workspace, stream);
}

}  // namespace trainer
