// SPDX-License-Identifier: Apache-2.0
//
// The data gradient of the 1x1 convolution at the start of a bottleneck, and on through the end of
// the block below, in one kernel: added to the gradient of the shortcut, masked by the ReLU there,
// and with the sums that the batch norms before that ReLU need.  What is written is the gradient of
// the residual of the block below as it is, and no pass reads it to add it up.  In passes it is
// read twice more, and written once more.
//
// Products of fp16 or bf16 by tensor cores, sums in fp32 and in the same order each time.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/backend/cuda/bottleneck/norm_backward_front.h"
#include "trainer/core/dtype.h"

struct CUstream_st;

namespace trainer {

struct Conv1BackwardShape {
  std::int64_t pixels = 0;  // of all images
  int filters = 0;          // of the convolution, padded: what is added up
  int channels = 0;         // of what it reads, padded
  bool is_dual = false;     // the block below ends with two batch norms
  // Of the shortcut: 2 where its convolution has read every second pixel of every second row alone,
  // from the first on, of images of so many pixels.
  int stride = 1;
  int height = 0, width = 0;
  DType dtype = DType::kFloat16;
  int sms = 1;
  int compute_capability = 0;        // its major number
  std::size_t max_shared_bytes = 0;  // of a thread block (MaxSharedBytes)
};
// Whether there is a kernel: fp16 from 7.0 on for 128 filters at most, fp16 and bf16 from 8.0 on
// for 256, and for 512 where a thread block may have 104 KB of shared memory; with a stride of 2 if
// it is not dual.
bool HasConv1Backward(const Conv1BackwardShape& shape);

// NormPartialSums::blocks of the sums below.
int Conv1BackwardBlocks(const Conv1BackwardShape& shape);

// All in device memory, rows of channels as batch_norm_kernels.h has them.
struct Conv1Backward {
  const void* gradient = nullptr;  // of what the convolution gives: pixels x filters
  const void* filter = nullptr;    // filters x channels
  // The gradient of the shortcut: pixels x channels, of those pixels alone that it has read.
  const void* residual = nullptr;
  // The gradient behind the ReLU below: pixels x channels; may be `residual` where the stride is 1.
  void* diff_src = nullptr;

  // Of the block below: where its ReLU passes, and of each of its batch norms what that has read,
  // what NormSavedFloats says, and what becomes NormPartialSums::values.
  struct Norm {
    const void* z = nullptr;
    const float* saved = nullptr;
    float* partial = nullptr;
  };
  const std::uint8_t* mask = nullptr;
  Norm first;
  Norm second;  // where the shape is_dual
};
// REQUIRES: HasConv1Backward(shape).
void RunConv1Backward(const Conv1BackwardShape& shape, const Conv1Backward& call,
                      CUstream_st* stream);

// The same with the batch norm that follows the convolution in front: for 128 filters at most,
// where no more than two thread blocks read what it reads, which is 512 channels, or 256 of 128
// filters on 7.x.
bool HasConv1BackwardWithNorm(const Conv1BackwardShape& shape);
// call.gradient is that of what the batch norm gives.  REQUIRES: HasConv1BackwardWithNorm(shape).
void RunConv1BackwardWithNorm(const Conv1BackwardShape& shape, const Conv1Backward& call,
                              const NormBackwardFront& norm, CUstream_st* stream);

}  // namespace trainer
