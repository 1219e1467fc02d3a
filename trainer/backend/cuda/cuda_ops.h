// SPDX-License-Identifier: Apache-2.0
//
// The ops of the cuda back end that are our own kernels.  Those that keep scratch for
// themselves allocate it from `backend` when they are made.

#pragma once

#include <memory>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/backend/cuda/libraries/cuda_libraries.h"

namespace trainer {

std::unique_ptr<InputTransform> MakeCudaInputTransform(const Shape& images, DType dtype);
std::unique_ptr<BatchNorm> MakeCudaBatchNorm(const BatchNormSpec& spec, Autotuner& autotuner);
std::unique_ptr<MaxPool> MakeCudaMaxPool(const MaxPoolSpec& spec);
std::unique_ptr<GlobalAveragePool> MakeCudaGlobalAveragePool(const TensorDesc& src);
std::unique_ptr<SoftmaxCrossEntropy> MakeCudaSoftmaxCrossEntropy(
    Backend& backend, const SoftmaxCrossEntropySpec& spec);
std::unique_ptr<Optimizer> MakeCudaOptimizer(OptimizerKind kind, Backend& backend,
                                             std::vector<ParameterSegment> segments,
                                             DType compute_type);

// In fewer and faster passes than the default one: its convolution over blocks of pixels, batch
// norm, ReLU and max pool as one (stem_kernels.h).  What the batch norm gives is nowhere in memory;
// nor is what the convolution gives where it is faster to compute it again (stem_passes.h).
// `backend` is the cuda back end of these libraries; both outlive the stem.
std::unique_ptr<Stem> MakeCudaStem(Backend& backend, CudaLibraries& libraries,
                                   const StemSpec& spec);

}  // namespace trainer
