// SPDX-License-Identifier: Apache-2.0
//
// SGD with momentum as Sgd of backend/ops.h has it, over a list of chunks of the flat memory.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trainer/backend/calls.h"
#include "trainer/backend/flat_gradients.h"
#include "trainer/backend/sums.h"
#include "trainer/core/dtype.h"

struct CUstream_st;

namespace trainer {

// A stretch of one segment that one block takes at a time.
struct UpdateChunk {
  std::size_t begin;
  std::uint32_t count;
  std::uint32_t decay;  // 0 or 1
};
inline constexpr std::uint32_t kUpdateChunk = 4096;
inline constexpr int kUpdateBlocks = 512;  // at most
// Of FlatGradients::compute_from, where there are such gradients: neighbours are read together.
inline constexpr std::size_t kUpdateAlignment = 8;

struct UpdateKernelCall {
  const UpdateChunk* chunks = nullptr;  // device memory
  int chunk_count = 0;
  const SgdParameters* parameters = nullptr;
  float* weight = nullptr;
  float* momentum = nullptr;
  FlatGradients gradients;
  void* compute_copy = nullptr;  // or null
  DType compute_type = DType::kFloat32;
};

// `of_blocks`: scratch for kUpdateBlocks of them.  *sums is overwritten.
void RunUpdate(const UpdateKernelCall& call, UpdateSums* of_blocks, UpdateSums* sums,
               CUstream_st* stream);

}  // namespace trainer
