// SPDX-License-Identifier: Apache-2.0
//
// The end of a bottleneck and the 1x1 convolution at the start of the block above, forward, in one
// kernel: batch norm, the addition of the residual and the ReLU, or two batch norms, their sum and
// the ReLU, are applied where the convolution reads.  What it reads is written once, with the mask
// of the ReLU, and not read again; what it gives comes with the sums for its batch norm.
//
// What is written between the two is what the passes write, to the bit.  Products of fp16 or bf16
// by tensor cores, sums in fp32 and in the same order each time.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/backend/cuda/norms/batch_norm_kernels.h"

struct CUstream_st;

namespace trainer {

struct Conv1ForwardShape {
  NormShape src;                     // of what the convolution reads: the result of the block below
  int filters = 0;                   // of the convolution, padded
  bool is_dual = false;              // the block below ends with two batch norms
  int compute_capability = 0;        // its major number
  std::size_t max_shared_bytes = 0;  // of a thread block (MaxSharedBytes)
};
// Whether there is a kernel: from 8.0 on fp16 and bf16, for 128 filters and 256 channels of src at
// most, or 512 where a thread block may have 157 KB of shared memory; on 7.x fp16, for 64 filters
// and 256 channels.
bool HasConv1Forward(const Conv1ForwardShape& shape);

// NormSource::partial_sums of what it gives.
int Conv1ForwardBlocks(const Conv1ForwardShape& shape);

// What is left to do at the end of a bottleneck.  Device memory, rows of channels as
// batch_norm_kernels.h has them.
struct BlockEndForward {
  struct Norm {
    NormSource src;
    NormParameters parameters;
  };
  Norm first;
  Norm second;                     // where the shape is_dual
  const void* residual = nullptr;  // where it is not
  void* dst = nullptr;
  bool of_batch = false;
  float* saved = nullptr;        // of both, what NormSavedFloats says; null: nothing is kept
  std::uint8_t* mask = nullptr;  // gets where the ReLU passes; or null
};

struct Conv1Forward {
  BlockEndForward end;
  const void* filter = nullptr;  // filters x channels
  void* dst = nullptr;           // pixels x filters
  // Gets NormSource::sums of dst, Conv1ForwardBlocks of them; null: nothing is added up.
  float* partial_sums = nullptr;
  float* scratch = nullptr;  // DualNormScratchFloats of src
};
// REQUIRES: HasConv1Forward(shape).
void RunConv1Forward(const Conv1ForwardShape& shape, const Conv1Forward& call, CUstream_st* stream);

}  // namespace trainer
