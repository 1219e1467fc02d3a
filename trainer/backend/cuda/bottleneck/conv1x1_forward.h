// SPDX-License-Identifier: Apache-2.0
//
// A 1x1 convolution of a bottleneck, forward, with what is in front of it, in one kernel: batch
// norm and ReLU in front of conv3, or the end of the block below in front of conv1: batch norm, the
// addition of the residual and the ReLU, or two batch norms, their sum and the ReLU.  All of it is
// applied where the convolution reads.  What it reads is written once, with the mask of the ReLU,
// and not read again, or not written at all; what it gives comes with the sums for its batch norm.
//
// What is written between the two is what the passes write, to the bit.  Products of fp16 or bf16
// by tensor cores, sums in fp32 and in the same order each time.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/backend/cuda/norms/batch_norm_kernels.h"

struct CUstream_st;

namespace trainer {

// What is in front of the convolution, with a ReLU behind it.
enum class NormsInFront : std::uint8_t { kNorm, kNormAndResidual, kDualNorm };

struct Conv1x1ForwardShape {
  NormShape src;    // of what the convolution reads
  int filters = 0;  // of the convolution, padded
  NormsInFront norms = NormsInFront::kNormAndResidual;
  int compute_capability = 0;        // its major number
  std::size_t max_shared_bytes = 0;  // of a thread block (MaxSharedBytes)
};
// Whether there is a kernel, for so many channels of src and filters at most, if a thread block may
// have its shared memory:
//                       from 8.0 on, fp16 and bf16            7.x, fp16
//   kNorm               128 channels, 85 KB                   64 channels, 38 KB
//   kNormAndResidual,   256 channels, 128 filters, 59 KB      256 channels, 64 filters, 59 KB
//     kDualNorm         512 channels, 128 filters, 157 KB
//                       1,024 channels, 256 filters, 128 KB
bool HasConv1x1Forward(const Conv1x1ForwardShape& shape);

// NormSource::partial_sums of what it gives.
int Conv1x1ForwardBlocks(const Conv1x1ForwardShape& shape);

// What is in front of it.  Device memory, rows of channels as batch_norm_kernels.h has them.
struct NormsForward {
  struct Norm {
    NormSource src;
    NormParameters parameters;
  };
  Norm first;
  Norm second;                     // kDualNorm
  const void* residual = nullptr;  // kNormAndResidual
  void* dst = nullptr;             // null: what the convolution reads is not written
  bool of_batch = false;
  float* saved = nullptr;        // of both, what NormSavedFloats says; null: nothing is kept
  std::uint8_t* mask = nullptr;  // gets where the ReLU passes; or null
};

struct Conv1x1Forward {
  NormsForward front;
  const void* filter = nullptr;  // filters x channels
  void* dst = nullptr;           // pixels x filters
  // Gets NormSource::sums of dst, Conv1x1ForwardBlocks of them; null: nothing is added up.
  float* partial_sums = nullptr;
  float* scratch = nullptr;  // DualNormScratchFloats of src, or NormScratchFloats where it is one
};
// REQUIRES: HasConv1x1Forward(shape).
void RunConv1x1Forward(const Conv1x1ForwardShape& shape, const Conv1x1Forward& call,
                       CUstream_st* stream);

}  // namespace trainer
