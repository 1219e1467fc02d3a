// SPDX-License-Identifier: Apache-2.0
//
// Convolutions that are products of matrices.  Pure.

#pragma once

#include <optional>

#include "trainer/backend/cuda/libraries/cublaslt.h"
#include "trainer/backend/cuda/libraries/cudnn_graph.h"

namespace trainer {

// As a product of matrices: a convolution with a 1x1 kernel and stride 1, of images whose
// channels-last memory is a matrix of pixels x channels.  None if it is not such a one.
std::optional<MatmulSpec> GemmOf(const ConvolutionGraph& graph, const EngineRules& rules);

// What the product reads and writes.  src, filter, dst: as CudnnExecutionPlan::Execute has them.
struct GemmOperands {
  const void* a;
  const void* b;
  void* d;
};
GemmOperands OperandsOf(ConvolutionPass pass, void* src, void* filter, void* dst);

}  // namespace trainer
