// SPDX-License-Identifier: Apache-2.0
//
// Softmax cross-entropy as SoftmaxCrossEntropy of backend/ops.h has it, a block for each sample.
// Sums are in the same order each time.

#pragma once

#include <cstdint>

#include "trainer/backend/calls.h"

struct CUstream_st;

namespace trainer {

struct LossKernelCall {
  std::int64_t samples = 0;
  std::int64_t classes = 0;
  float smoothing = 0;
  const LossParameters* parameters = nullptr;
  const float* logits = nullptr;
  const std::int32_t* labels = nullptr;
  const float* lambda = nullptr;  // null: 1 for all
  float* diff_logits = nullptr;   // or null; may be logits
};

// `of_samples`: scratch for the sums of each sample.  Adds to *sums.
void RunLoss(const LossKernelCall& call, LossSums* of_samples, LossSums* sums, CUstream_st* stream);

}  // namespace trainer
