// SPDX-License-Identifier: Apache-2.0
//
// What changes from one call of an op to the next, beside addresses.  Ops read it from device
// memory when their work runs, so that work that was recorded once (Backend::Capture) can be told
// something else each time.  Plain, so that kernels can include it.

#pragma once

#include <cstdint>

namespace trainer {

// Of SoftmaxCrossEntropy.
struct LossParameters {
  std::int64_t valid = 0;  // samples that count, the first of the batch: 0 to N
  float diff_scale = 1;    // loss scale: multiplies the gradients, not the sums
};

// Of LARS (backend/ops.h): MLPerf's, which its rules fix.
inline constexpr float kLarsEta = 0.001F;

// Of an Optimizer.
struct UpdateParameters {
  float learning_rate = 0;
  float momentum_factor = 0;
  float weight_decay = 0;
  float gradient_scale = 1;
};

}  // namespace trainer
