// SPDX-License-Identifier: Apache-2.0
//
// Convolution by cuDNN, or by cuBLASLt where it is a product of matrices and that is faster, on
// channels-last memory with padded channels (layout.h).  The padding takes part like any other
// channel: zeros in, zeros out.

#pragma once

#include <memory>

#include "trainer/backend/cuda/cudnn_graph.h"
#include "trainer/backend/ops.h"

namespace trainer {

// cuDNN on one device, and what was the fastest there: one for each device and process, since
// timing is slow.  Safe from any thread.
class CudnnDevice;

// Of the current device.  Throws Error (EX_UNAVAILABLE) if cuDNN cannot work on it.
CudnnDevice& CurrentCudnnDevice();

// `rules.deterministic` also means that nothing is timed: which engine runs never depends on a
// clock.
std::unique_ptr<Convolution> MakeCudnnConvolution(CudnnDevice& device, const EngineRules& rules,
                                                  const ConvolutionSpec& spec);

}  // namespace trainer
