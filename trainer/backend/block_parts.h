// SPDX-License-Identifier: Apache-2.0
//
// What the default blocks are put together from: convolutions with the batch norm behind them, and
// memory of a MemoryPlanner as a tensor.

#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/backend/backend.h"

namespace trainer {

// The memory of request `id` of `plan`, seen as a tensor.
inline Tensor TensorAt(const TensorDesc& desc, const MemoryPlanner& plan, int id,
                       std::byte* arena) {
  return {desc, arena + plan.offset(id)};
}

// Appends <convolution>.weight with the description `filter`, and
// <norm>.{weight,bias,running_mean,running_var} of its first extent.
void AppendConvolutionNormParameters(const std::string& convolution, const std::string& norm,
                                     const TensorDesc& filter,
                                     std::vector<ParameterSpec>& parameters);

// A convolution whose result is kept from forward to backward, and the parameters of the batch norm
// behind it.  What goes in and out belongs to the caller.
class KeptConvolution {
 public:
  static constexpr std::size_t kParameters = 5;

  // Whether `spec` wants sums does not matter.
  KeptConvolution(Backend& backend, const ConvolutionSpec& spec);

  const TensorDesc& dst() const { return convolution_->dst(); }
  std::size_t workspace_bytes() const { return convolution_->workspace_bytes(); }

  void AppendParameters(const std::string& convolution, const std::string& norm,
                        std::vector<ParameterSpec>& parameters) const {
    AppendConvolutionNormParameters(convolution, norm, convolution_->filter(), parameters);
  }

  void Reserve(const BlockTimes& times, const std::string& name, MemoryPlanner& plan);
  // `bindings`: kParameters of them, in the order of AppendParameters.
  void Bind(const MemoryPlanner& plan, std::byte* arena,
            std::span<const ParameterBinding> bindings);

  void Forward(Mode mode, const Tensor& src, void* workspace, Stream& stream);
  // Where the gradient of src goes; empty if nobody wants it.  `before` is of the batch norm before
  // the convolution, if there is one with a ReLU alone.
  struct SrcGradient {
    Tensor values;
    NormInput before;
  };
  // From the gradient of what Forward has kept to those of the filter and of src, which may be past
  // the ReLU before it: diff_src() of it says so.
  void Backward(const Tensor& src, const Tensor& diff_kept, const SrcGradient& diff_src,
                void* workspace, Stream& stream);
  bool applies_norm_backward() const { return convolution_->applies_norm_backward(); }
  // The same from a gradient that has yet to go back through the batch norm behind.  `diff_src` has
  // one before.
  void BackwardWithBnApply(const GradientBeforeBnBackward& diff_kept, const SrcGradient& diff_src,
                           void* workspace, Stream& stream);
  // As the batch norm before takes it.
  TensorWithBnStats diff_src(const Tensor& values) const { return {values, gradient_sums_}; }

  const Tensor& kept() const { return kept_; }
  // The same as the batch norm reads it, in the mode of the last Forward.
  TensorWithBnStats summed(Mode mode) const {
    return {kept_, mode == Mode::kTraining ? sums_ : nullptr};
  }
  const BatchNormParameters& norm() const { return norm_; }
  const Tensor& diff_scale() const { return diff_scale_; }
  const Tensor& diff_shift() const { return diff_shift_; }

 private:
  std::unique_ptr<Convolution> convolution_;
  int kept_id_ = -1;
  int bn_stats_id_ = -1;
  int bn_backward_stats_id_ = -1;
  Tensor kept_;
  void* sums_ = nullptr;           // null if the convolution gives none
  void* gradient_sums_ = nullptr;  // same
  ParameterBinding filter_;
  BatchNormParameters norm_;
  Tensor diff_scale_;
  Tensor diff_shift_;
};

// Convolution, batch norm, and (both optional) addition of a residual and ReLU.
class ConvolutionNorm {
 public:
  static constexpr std::size_t kParameters = KeptConvolution::kParameters;

  struct Spec {
    ConvolutionSpec convolution;
    bool add = false;
    bool relu = false;
  };

  ConvolutionNorm(Backend& backend, const Spec& spec);

  const TensorDesc& dst() const { return norm_->dst(); }
  std::size_t workspace_bytes() const {
    return std::max(convolution_.workspace_bytes(), norm_->workspace_bytes());
  }

  // Of its batch norm, for the convolution behind it.
  NormInput norm_input() const { return {convolution_.kept(), saved_}; }

  void AppendParameters(const std::string& convolution, const std::string& norm,
                        std::vector<ParameterSpec>& parameters) const {
    convolution_.AppendParameters(convolution, norm, parameters);
  }

  void Reserve(const BlockTimes& times, const std::string& name, MemoryPlanner& plan);
  void Bind(const MemoryPlanner& plan, std::byte* arena,
            std::span<const ParameterBinding> bindings);

  void Forward(Mode mode, const Tensor& src, const Tensor& residual, const Tensor& dst,
               void* workspace, Stream& stream);

  // Where gradients go.  `convolved`, of the description of dst(), is scratch; it and `residual`
  // may be diff_dst, but not both.
  struct Gradients {
    Tensor convolved;
    Tensor residual;
    KeptConvolution::SrcGradient src;
  };
  void Backward(Mode mode, const Tensor& src, const Tensor& dst, const TensorWithBnStats& diff_dst,
                const Gradients& gradients, void* workspace, Stream& stream);
  // What it has put there, as the one before takes it.
  TensorWithBnStats diff_src(const Tensor& values) const { return convolution_.diff_src(values); }

 private:
  KeptConvolution convolution_;
  std::unique_ptr<BatchNorm> norm_;
  int saved_id_ = -1;
  int coefficients_id_ = -1;
  void* saved_ = nullptr;
  void* coefficients_ = nullptr;  // null unless the convolution applies_norm_backward()
};

// Two convolutions, each with a batch norm, whose sum goes through a ReLU.
class ConvolutionDualNorm {
 public:
  static constexpr std::size_t kParameters = 2 * KeptConvolution::kParameters;

  ConvolutionDualNorm(Backend& backend, const ConvolutionSpec& first,
                      const ConvolutionSpec& second);

  const TensorDesc& dst() const { return norms_->dst(); }
  std::size_t workspace_bytes() const {
    return std::max(
        {first_.workspace_bytes(), second_.workspace_bytes(), norms_->workspace_bytes()});
  }

  const KeptConvolution& first() const { return first_; }
  const KeptConvolution& second() const { return second_; }

  void Reserve(const BlockTimes& times, const std::string& first, const std::string& second,
               MemoryPlanner& plan);
  // `bindings`: those of the first, then those of the second.
  void Bind(const MemoryPlanner& plan, std::byte* arena,
            std::span<const ParameterBinding> bindings);

  void Forward(Mode mode, const Tensor& first_src, const Tensor& second_src, const Tensor& dst,
               void* workspace, Stream& stream);

  // Where the gradients of one go: `convolved` is scratch, of the description of dst().
  struct Gradients {
    Tensor convolved;
    KeptConvolution::SrcGradient src;
  };
  // Overwrites diff_dst, which second.convolved may be.
  void Backward(Mode mode, const Tensor& first_src, const Tensor& second_src, const Tensor& dst,
                const Tensor& diff_dst, const Gradients& first, const Gradients& second,
                void* workspace, Stream& stream);

 private:
  KeptConvolution first_;
  KeptConvolution second_;
  std::unique_ptr<DualBatchNorm> norms_;
  int saved_id_ = -1;
  int coefficients_id_ = -1;
  void* saved_ = nullptr;
  void* coefficients_ = nullptr;  // null unless the first convolution applies_norm_backward()
};

}  // namespace trainer
