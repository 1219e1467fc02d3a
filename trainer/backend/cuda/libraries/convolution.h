// SPDX-License-Identifier: Apache-2.0
//
// Convolution by cuDNN, or by cuBLASLt where it is a product of matrices and that is faster, on
// channels-last memory with padded channels (layout.h).  The padding takes part like any other
// channel: zeros in, zeros out.

#pragma once

#include <memory>

#include "trainer/backend/cuda/libraries/cuda_libraries.h"
#include "trainer/backend/cuda/libraries/cudnn_graph.h"
#include "trainer/backend/plan_cache.h"

namespace trainer {

class CudnnDevice;

// cuDNN on the current device.  Throws Error (EX_UNAVAILABLE) if it cannot work there.
std::shared_ptr<CudnnDevice> OpenCudnnDevice(const DevicePlanCache& plans);

// What is the fastest is found once for each shape, device and process, since timing is slow; other
// threads wait for that, and further back ends build nothing else.  Where the device's plans have
// it, nothing is timed; they get what timing shows.  `rules.deterministic` also means that nothing
// is timed: which engine runs never depends on a clock.
std::unique_ptr<CudaConvolution> MakeCudnnConvolution(std::shared_ptr<CudnnDevice> device,
                                                      const EngineRules& rules,
                                                      const ConvolutionSpec& spec,
                                                      const ConvolutionFusions& fusions);

}  // namespace trainer
