// SPDX-License-Identifier: Apache-2.0
//
// RunConv1BackwardWithNorm with the gradient of the filter as well: all that goes backward through
// the 1x1 convolution at the start of a bottleneck, the batch norm that follows it and the end of
// the block below, in one kernel.  The gradient between the batch norm and the convolution is never
// written.  Where the ReLU below passes is where what the convolution has read is positive, which
// the filter's gradient needs anyway: no mask is read.
//
// Products of fp16 or bf16 by tensor cores, sums in fp32 and in the same order each time.

#pragma once

#include <cstdint>

#include "trainer/backend/cuda/bottleneck/conv1_backward.h"
#include "trainer/backend/cuda/bottleneck/norm_backward_front.h"

struct CUstream_st;

namespace trainer {

// Whether there is a kernel, all of whose sums stay in registers: fp16 and bf16 from 8.0 on, for
// 256 channels, of 64 filters, or of 128 with a stride of 2; with 106 to 152 KB of shared memory.
bool HasConv1BackwardWithFilter(const Conv1BackwardShape& shape);

// Floats of scratch: 64 KB for each multiprocessor, of 128 filters 128.
std::int64_t Conv1BackwardWithFilterScratchFloats(const Conv1BackwardShape& shape);

struct Conv1FilterGradient {
  const void* src = nullptr;    // what the convolution has read, behind the ReLU: pixels x channels
  void* diff_filter = nullptr;  // filters x channels
  float* scratch = nullptr;
};
// As RunConv1BackwardWithNorm, but that neither norm.diff_src is written nor call.mask read: a
// value that was positive, and is zero as it was stored, stops the gradient here.  REQUIRES:
// HasConv1BackwardWithFilter(shape).
void RunConv1BackwardWithFilter(const Conv1BackwardShape& shape, const Conv1Backward& call,
                                const NormBackwardFront& norm, const Conv1FilterGradient& filter,
                                CUstream_st* stream);

}  // namespace trainer
