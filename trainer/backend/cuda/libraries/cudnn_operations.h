// SPDX-License-Identifier: Apache-2.0
//
// A convolution as a graph of cuDNN's operations: one, or several where more is done together with
// it.

#pragma once

#include <cstdint>
#include <vector>

#include "trainer/backend/cuda/libraries/convolution_graph.h"
#include "trainer/backend/cuda/libraries/cudnn_descriptor.h"

namespace trainer {

// `handle` is null for a device that is described.
CudnnDescriptor MakeOperationGraph(const ConvolutionGraph& graph, cudnnHandle_t handle);

// The tensors of such a graph that are in memory: what it calls them, and where they are.
struct TensorPointers {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
};
TensorPointers PointersOf(const ConvolutionGraph& graph, const ConvolutionOperands& operands);

}  // namespace trainer
