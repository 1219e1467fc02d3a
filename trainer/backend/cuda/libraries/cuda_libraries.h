// SPDX-License-Identifier: Apache-2.0
//
// What needs a GPU to be there: the two ops that NVIDIA's libraries compute, convolution by cuDNN
// and the linear layer by cuBLASLt, and its clock.  The other ops of the back end are kernels of
// our own and know nothing of them.

#pragma once

#include <memory>
#include <string>

#include "trainer/backend/cuda/runtime/timing.h"
#include "trainer/backend/ops.h"
#include "trainer/backend/plan_cache.h"

namespace trainer {

// How the back end computes.
struct CudaPrecision {
  DType storage = DType::kFloat32;  // activations and filters; sums are always fp32
  bool tf32 = false;                // tensor cores for kFloat32, with 10 bits of mantissa
};

// What is wanted together with a convolution, as cuDNN's graphs have it, where that is the fastest.
struct ConvolutionFusions {
  bool bn_stats = false;  // its result's statistics: a batch norm follows
  bool drelu = false;  // back through the ReLU of the batch norm before it, with the sums for that
};

class CudaConvolution : public Convolution {
 public:
  // As Forward, and `sums` becomes NormSource::sums of dst: bn_stats_bytes(), 0 where there is
  // none.
  virtual std::size_t bn_stats_bytes() const = 0;
  virtual void ForwardWithBnStats(const Tensor& src, const Tensor& filter, const Tensor& dst,
                                  float* sums, void* workspace, Stream& stream) = 0;
  // As BackwardData, and on through the ReLU: diff_src becomes the gradient of what the batch norm
  // before gives, which has read `z` and saved what NormSavedFloats says.  `sums` becomes
  // NormBackward::sums of it: drelu_sums_bytes(), 0 where there is none.
  virtual std::size_t drelu_sums_bytes() const = 0;
  virtual void BackwardDataDreluBnStats(const Tensor& diff_dst, const Tensor& filter, const void* z,
                                        const float* saved, const Tensor& diff_src, float* sums,
                                        void* workspace, Stream& stream) = 0;
};

class CudaLibraries {
 public:
  virtual ~CudaLibraries() = default;

  virtual std::string versions() const = 0;  // "cuDNN 9.19.0, cuBLASLt 13.1.0"
  // Both choose the fastest algorithm when they are made, by timing the few that the library
  // recommends, once per shape and process, or as PlanCache has it.  All tensors are as layout.h
  // says; workspaces are device memory.
  virtual std::unique_ptr<CudaConvolution> MakeConvolution(
      const ConvolutionSpec& spec, const ConvolutionFusions& fusions = {}) = 0;
  virtual std::unique_ptr<Linear> MakeLinear(const LinearSpec& spec) = 0;

  // Results must not depend on a clock.
  virtual bool deterministic() const = 0;
  // For what is chosen in the same way among our own kernels.
  virtual Autotuner& autotuner() = 0;
};

// On the current device.  `deterministic`: only algorithms that give the same bits each time.
// `plans` may be null; `device` is all that plans depend on beside the libraries' versions.
std::unique_ptr<CudaLibraries> MakeCudaLibraries(const CudaPrecision& precision, bool deterministic,
                                                 std::shared_ptr<PlanCache> plans,
                                                 const std::string& device);

}  // namespace trainer
