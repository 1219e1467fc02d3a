// SPDX-License-Identifier: Apache-2.0
//
// What blocks are put together from: memory of a MemoryPlanner as a tensor, the parameters of a
// convolution with the batch norm behind it, and of the default blocks both as one part.

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
inline constexpr std::size_t kConvolutionNormParameters = 5;

// Convolution, whose result is kept from forward to backward, batch norm, and (both optional)
// addition of a residual and ReLU.  What goes in and out belongs to the caller.
class ConvolutionNorm {
 public:
  struct Spec {
    ConvolutionSpec convolution;
    bool add = false;
    bool relu = false;
  };

  ConvolutionNorm(Backend& backend, const Spec& spec);

  const TensorDesc& dst() const { return norm_->dst(); }
  std::size_t workspace_bytes() const {
    return std::max(convolution_->workspace_bytes(), norm_->workspace_bytes());
  }

  void AppendParameters(const std::string& convolution, const std::string& norm,
                        std::vector<ParameterSpec>& parameters) const {
    AppendConvolutionNormParameters(convolution, norm, convolution_->filter(), parameters);
  }

  void Reserve(const BlockTimes& times, const std::string& name, MemoryPlanner& plan);
  // `bindings`: kConvolutionNormParameters of them, in the order of AppendParameters.
  void Bind(const MemoryPlanner& plan, std::byte* arena,
            std::span<const ParameterBinding> bindings);

  void Forward(Mode mode, const Tensor& src, const Tensor& residual, const Tensor& dst,
               void* workspace, Stream& stream);

  // Where gradients go.  `convolved`, of the description of dst(), is scratch; it and `residual`
  // may be diff_dst, but not both.  `src` is empty if nobody wants it.
  struct Gradients {
    Tensor convolved;
    Tensor residual;
    Tensor src;
  };
  void Backward(Mode mode, const Tensor& src, const Tensor& dst, const Tensor& diff_dst,
                const Gradients& gradients, void* workspace, Stream& stream);

 private:
  std::unique_ptr<Convolution> convolution_;
  std::unique_ptr<BatchNorm> norm_;
  int convolved_id_ = -1;
  int saved_id_ = -1;
  Tensor convolved_;
  void* saved_ = nullptr;
  ParameterBinding filter_;
  BatchNormParameters parameters_;
  Tensor diff_scale_;
  Tensor diff_shift_;
};

}  // namespace trainer
