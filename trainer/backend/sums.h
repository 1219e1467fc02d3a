// SPDX-License-Identifier: Apache-2.0
//
// What calls of ops leave on the device for the trainer to read.  Plain, so that kernels can
// include it.

#pragma once

namespace trainer {

// What a loss call adds up, on the device, in this order.  Read back with Backend::CopyToHost.
struct LossSums {
  float loss;     // sum over the valid samples
  float top1;     // samples whose label has the largest logit
  float top5;     // samples whose label is among the five largest
  float samples;  // valid samples
};

// What one update found, on the device.
struct UpdateSums {
  float sum_of_squares;  // of the weights with decay, before the update
  // 0, or 1 if any gradient was infinite or not a number: then nothing was updated.
  float nonfinite;
  float gradient_squares;  // sum of squares of the gradients, as they come
};

}  // namespace trainer
