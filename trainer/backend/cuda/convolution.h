// SPDX-License-Identifier: Apache-2.0
//
// Convolution by cuDNN, or by cuBLASLt where it is a product of matrices and that is faster, on
// channels-last memory with padded channels (layout.h).  The padding takes part like any other
// channel: zeros in, zeros out.

#pragma once

#include <memory>
#include <optional>

#include "trainer/backend/cuda/cublaslt.h"
#include "trainer/backend/cuda/cudnn_graph.h"
#include "trainer/backend/ops.h"
#include "trainer/backend/plan_cache.h"

namespace trainer {

// cuDNN on one device, for one back end.  Used from one thread at a time, as the back end is: a
// handle of cuDNN has one current stream, and cuDNN does not promise that a plan may run in two
// threads at once.  So its convolutions take no lock.
class CudnnDevice;

// The current device.  Throws Error (EX_UNAVAILABLE) if cuDNN cannot work on it.
std::shared_ptr<CudnnDevice> OpenCudnnDevice(const DevicePlans& plans);

// What is the fastest is found once for each shape, device and process, since timing is slow; other
// threads wait for that, and further back ends build nothing else.  Where the device's plans have
// it, nothing is timed; they get what timing shows.  `rules.deterministic` also
// means that nothing is timed: which engine runs never depends on a clock.
std::unique_ptr<Convolution> MakeCudnnConvolution(std::shared_ptr<CudnnDevice> device,
                                                  const EngineRules& rules,
                                                  const ConvolutionSpec& spec);

// As a product of matrices: a convolution with a 1x1 kernel and stride 1, of images whose
// channels-last memory is a matrix of pixels x channels.  None if it is not such a one.
std::optional<MatmulSpec> ProductOf(const ConvolutionGraph& graph, const EngineRules& rules);

// What the product reads and writes.  src, filter, dst: as ConvolutionPlan::Execute has them.
struct ProductOperands {
  const void* a;
  const void* b;
  void* d;
};
ProductOperands OperandsOf(ConvolutionPass pass, void* src, void* filter, void* dst);

}  // namespace trainer
