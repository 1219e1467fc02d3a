// SPDX-License-Identifier: Apache-2.0
//
// The backward pass of the batch norm that follows a 1x1 convolution, in front of the data gradient
// of that convolution, in one kernel: what the product multiplies is made where it is read, written
// once for the filter's gradient, and not read again.  What is written is what RunNormBackward
// writes, to the bit.

#pragma once

namespace trainer {

// All in device memory, rows of channels as batch_norm_kernels.h has them.  The gradient that comes
// in is behind the ReLU.
struct NormBackwardFront {
  const void* src = nullptr;     // what the batch norm has read
  const float* saved = nullptr;  // what NormSavedFloats says
  // What RunNormBackwardStatsOnly has left; null: coefficients come of the rest, as RunNormBackward
  // makes them.
  const float* coefficients = nullptr;
  const float* sums = nullptr;   // of NormBackward
  const float* scale = nullptr;  // of `channels`, as are the gradients
  float* diff_scale = nullptr;
  float* diff_shift = nullptr;
  int channels = 0;  // not padded
  bool of_batch = false;
  // Gets the gradient of src, where that is written; not the gradient that comes in.
  void* diff_src = nullptr;
};

}  // namespace trainer
