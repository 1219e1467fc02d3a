// SPDX-License-Identifier: Apache-2.0
//
// SGD with momentum and LARS as Optimizer of backend/ops.h has them, over a list of chunks of the
// flat memory.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/backend/calls.h"
#include "trainer/core/dtype.h"

struct CUstream_st;

namespace trainer {

// A stretch of one segment that one block takes at a time.
struct UpdateChunk {
  std::size_t begin;
  std::uint32_t count;
  std::uint16_t decay;  // 0 or 1
  std::uint16_t segment;
};
inline constexpr std::uint32_t kUpdateChunk = 4096;
inline constexpr int kUpdateBlocks = 512;  // at most
// Of FlatGradients::compute_from, where there are such gradients: neighbours are read together.
inline constexpr std::size_t kUpdateAlignment = 8;

struct UpdateKernelCall {
  const UpdateChunk* chunks = nullptr;  // device memory
  int chunk_count = 0;
  const UpdateParameters* parameters = nullptr;
  float* weight = nullptr;
  float* momentum = nullptr;
  FlatGradients gradients;
  void* compute_copy = nullptr;  // or null
  DType compute_type = DType::kFloat32;
};

// `of_blocks`: scratch for kUpdateBlocks of them.  *sums is overwritten.
void RunSgd(const UpdateKernelCall& call, UpdateSums* of_blocks, UpdateSums* sums,
            CUstream_st* stream);

// Memory of the device.
struct LarsMemory {
  const std::uint32_t* first_chunks = nullptr;  // of each tensor; one more entry than tensors
  int tensor_count = 0;
  // Scratch.
  UpdateSums* of_chunks = nullptr;   // one for each chunk
  UpdateSums* of_tensors = nullptr;  // one for each tensor
  float* ratios = nullptr;           // the same
};

// *sums is overwritten.
void RunLars(const UpdateKernelCall& call, const LarsMemory& memory, UpdateSums* sums,
             CUstream_st* stream);

}  // namespace trainer
