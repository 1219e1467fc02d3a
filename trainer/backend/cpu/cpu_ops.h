// SPDX-License-Identifier: Apache-2.0
//
// The ops of the cpu back end, each in the file of its name.

#pragma once

#include <memory>
#include <vector>

#include "trainer/backend/cpu/onednn.h"
#include "trainer/backend/ops.h"
#include "trainer/backend/optimizer.h"

namespace trainer {

std::unique_ptr<InputTransform> MakeCpuInputTransform(const Shape& images);
std::unique_ptr<Convolution> MakeCpuConvolution(const OneDnn& onednn, const ConvolutionSpec& spec);
std::unique_ptr<BatchNorm> MakeCpuBatchNorm(const BatchNormSpec& spec);
std::unique_ptr<MaxPool> MakeCpuMaxPool(const OneDnn& onednn, const MaxPoolSpec& spec);
std::unique_ptr<GlobalAveragePool> MakeCpuGlobalAveragePool(const TensorDesc& src);
std::unique_ptr<Linear> MakeCpuLinear(const OneDnn& onednn, const LinearSpec& spec);
std::unique_ptr<SoftmaxCrossEntropy> MakeCpuSoftmaxCrossEntropy(
    const SoftmaxCrossEntropySpec& spec);
std::unique_ptr<Optimizer> MakeCpuOptimizer(OptimizerKind kind,
                                            std::vector<ParameterSegment> segments);

}  // namespace trainer
