// SPDX-License-Identifier: Apache-2.0
//
// What goes backward through the 1x1 convolution at the end of a bottleneck from 64 to 256 channels
// and the batch norms on both sides of it, in one kernel.  By bytes: one read of the gradient that
// comes in and of what both batch norms have read, one write of the residual's gradient and of the
// gradient that goes out.  In passes the gradient in between, which is four times as wide as the
// one that goes out, is written once and read twice.
//
// Products of fp16 or bf16 by tensor cores, sums in fp32 and in the same order each time.

#pragma once

#include <cstdint>

#include "trainer/core/dtype.h"

struct CUstream_st;

namespace trainer {

inline constexpr int kConv3Channels = 64;  // of what the convolution reads
inline constexpr int kConv3Filters = 256;  // of what it gives

struct Conv3BackwardShape {
  std::int64_t pixels = 0;  // of all images
  DType dtype = DType::kFloat16;
  int sms = 1;
  int compute_capability = 0;  // its major number
};
// Whether there is a kernel: fp16 from 7.0 on, bf16 from 8.0 on.
bool HasConv3Backward(const Conv3BackwardShape& shape);

// Floats of scratch: 64.5 KB for each multiprocessor.
std::int64_t Conv3BackwardScratchFloats(const Conv3BackwardShape& shape);

// All in device memory, rows of channels as batch_norm_kernels.h has them.
struct Conv3Backward {
  // Of the batch norm behind the convolution: the gradient of what it gives, where its ReLU lets
  // that through, what it has read, its means, and three coefficients of each channel
  // (RunNormBackwardStatsOnly).
  const void* gradient = nullptr;
  const std::uint8_t* mask = nullptr;  // null: `gradient` is behind the ReLU already
  const void* convolved = nullptr;
  const float* means = nullptr;
  const float* coefficients = nullptr;
  void* diff_residual = nullptr;  // the gradient behind the ReLU; null, or may be `gradient`

  const void* filter = nullptr;
  void* diff_filter = nullptr;

  // Of the batch norm before the convolution: what it has read, and what it has saved; the gradient
  // of what it gives, behind its ReLU, and the sums that NormBackward has of that.
  const void* before = nullptr;
  const float* saved = nullptr;
  void* diff_src = nullptr;
  float* sums = nullptr;

  float* scratch = nullptr;
};
// REQUIRES: HasConv3Backward(shape).
void RunConv3Backward(const Conv3BackwardShape& shape, const Conv3Backward& call,
                      CUstream_st* stream);

}  // namespace trainer
