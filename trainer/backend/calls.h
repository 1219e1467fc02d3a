// SPDX-License-Identifier: Apache-2.0
//
// What changes from one call of an op to the next, and what calls leave on the device.  Plain, so
// that kernels can include it.

#pragma once

#include <cstddef>
#include <cstdint>

namespace trainer {

// What changes from one call of an op to the next, beside addresses.  Ops read it from device
// memory when their work runs, so that work that was recorded once (Backend::Capture) can be told
// something else each time.

// Of SoftmaxCrossEntropy.
struct LossParameters {
  std::int64_t valid = 0;  // samples that count, the first of the batch: 0 to N
  float diff_scale = 1;    // loss scale: multiplies the gradients, not the sums
};

// Of LARS (backend/ops.h): MLPerf's, which its rules fix.
inline constexpr float kLarsEta = 0.001F;

struct UpdateSums;

// Of an Optimizer.
struct UpdateParameters {
  float learning_rate = 0;
  float momentum_factor = 0;
  float weight_decay = 0;
  float gradient_scale = 1;
  // Device memory: what the update before has found, where nobody has seen that yet.  Where it was
  // left out, so is this one.  Null: that one is done with.
  const UpdateSums* before = nullptr;
};

// What calls of ops leave on the device for the trainer to read.

// What a loss call adds up, on the device, in this order.  Read back with Backend::CopyToHost.
struct LossSums {
  float loss;     // sum over the valid samples
  float top1;     // samples whose label is the argmax of the logits
  float top5;     // samples whose label is among the first five
  float samples;  // valid samples
};

// What one update found, on the device.
struct UpdateSums {
  float sum_of_squares;  // of the weights with decay, before the update
  // 0, or 1 if any gradient was infinite or not a number, or the update before was left out for
  // that (UpdateParameters): then nothing was updated.
  float nonfinite;
  float gradient_squares;  // sum of squares of the gradients, as they come
};

// Where the gradients of the flat parameter memory (model/parameters.h) are.
//
// Element i is fp32[i], from `compute_from` on compute[i], which is of the compute type.
// `compute_from` is a multiple of 8, unless `compute` is null.
struct FlatGradients {
  float* fp32 = nullptr;
  void* compute = nullptr;
  std::size_t compute_from = SIZE_MAX;
};

}  // namespace trainer
