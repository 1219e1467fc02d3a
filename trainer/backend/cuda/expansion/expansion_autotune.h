// SPDX-License-Identifier: Apache-2.0
//
// Whether the kernel of conv3_backward.h takes the place of the passes on the current device.
// For construction only, as FastestOf, and in memory of its own.

#pragma once

#include <cuda_runtime.h>

#include <functional>

#include "trainer/backend/cuda/bottleneck/conv3_backward.h"
#include "trainer/backend/plan_cache.h"

namespace trainer {

// What the convolution does without the kernel, from the gradient of what it gives.
struct ExpansionPasses {
  struct Operands {
    void* src;  // what the batch norm before has given
    void* diff_dst;
    void* filter;
    void* diff_filter;
    void* diff_src;
    const void* before;  // as Conv3Backward has them
    const float* saved;
    float* sums;  // five arrays of a channel each
  };
  std::function<void(const Operands&, cudaStream_t)> backward_filter;
  std::function<void(const Operands&, cudaStream_t)> backward_data;
  bool gates = false;  // backward_data goes on through the ReLU and sums
};

// As `plans` have it, or as a race says in which each does all that lies between the gradient of
// what the batch norm behind gives and that of what the one before has read.  A kernel whose
// results differ from those of the passes by more than rounding does not take part.  Found once for
// each shape, device and process.
bool TakesExpansionKernel(const Conv3BackwardShape& shape, const ExpansionPasses& passes,
                          const DevicePlanCache& plans);

}  // namespace trainer
