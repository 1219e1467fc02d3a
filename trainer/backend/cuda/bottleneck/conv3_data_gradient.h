// SPDX-License-Identifier: Apache-2.0
//
// The data gradient of the 1x1 convolution at the end of a bottleneck, from 128 to 512 or 256 to
// 1,024 channels, with the batch norm behind it in front and the ReLU before it behind, in one
// kernel: the gradient that comes in and what bn3 has read are read once, the gradient of what the
// convolution gives is written for the filter's gradient, to the bit what the pass writes, and not
// read again; the gradient that goes out comes with the sums for bn2.
//
// Products of fp16 or bf16 by tensor cores, sums in fp32 and in the same order each time.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/backend/cuda/bottleneck/norm_backward_front.h"
#include "trainer/core/dtype.h"

struct CUstream_st;

namespace trainer {

struct Conv3DataGradientShape {
  std::int64_t pixels = 0;  // of all images
  int filters = 0;          // of the convolution, padded: what is added up
  int channels = 0;         // of what it reads, padded
  DType dtype = DType::kFloat16;
  int sms = 1;
  int compute_capability = 0;        // its major number
  std::size_t max_shared_bytes = 0;  // of a thread block (MaxSharedBytes)
};
// Whether there is a kernel: fp16 and bf16 from 8.0 on, for 257 filters at least, where a thread
// block may have its shared memory:
//   at most    512 filters, 128 channels    155 KB
//              1,024 filters, 256 channels  119 KB
bool HasConv3DataGradient(const Conv3DataGradientShape& shape);

// NormPartialSums::blocks of the sums below.
int Conv3DataGradientBlocks(const Conv3DataGradientShape& shape);

// All in device memory, rows of channels as batch_norm_kernels.h has them.
struct Conv3DataGradient {
  // Of what the batch norm gives, behind its ReLU: pixels x filters.
  const void* gradient = nullptr;
  NormBackwardFront norm;
  const void* filter = nullptr;  // filters x channels

  // Of the batch norm before the convolution: where its ReLU passes, what it has read, what
  // NormSavedFloats says; the gradient of what it gives, behind its ReLU, and what becomes
  // NormPartialSums::values of that.
  const std::uint8_t* mask = nullptr;
  const void* before = nullptr;
  const float* saved = nullptr;
  void* diff_src = nullptr;
  float* partial = nullptr;
};
// REQUIRES: HasConv3DataGradient(shape).
void RunConv3DataGradient(const Conv3DataGradientShape& shape, const Conv3DataGradient& call,
                          CUstream_st* stream);

}  // namespace trainer
