// SPDX-License-Identifier: Apache-2.0
//
// The few numbers that a step is told and those that it finds.  Kernels have them in device memory,
// the training loop in memory of the host; each way is one copy.

#pragma once

#include "trainer/backend/backend.h"
#include "trainer/backend/calls.h"
#include "trainer/backend/sums.h"

namespace trainer {

struct StepNumbers {
  LossParameters loss;
  UpdateParameters update;
  LossSums loss_sums = {};
  UpdateSums update_sums = {};
};

class SharedStepNumbers {
 public:
  explicit SharedStepNumbers(Backend& backend)
      : backend_(backend),
        host_(backend.AllocateHost(sizeof(StepNumbers))),
        device_(backend.AllocateDevice(sizeof(StepNumbers))) {}

  // Not to be touched while a copy is queued.
  StepNumbers& host() { return *reinterpret_cast<StepNumbers*>(host_.data()); }
  StepNumbers* device() { return reinterpret_cast<StepNumbers*>(device_.data()); }

  // Both queue a copy of all of it on `stream`.
  void ToDevice(Stream& stream) {
    backend_.CopyToDevice(device_.data(), host_.data(), sizeof(StepNumbers), stream);
  }
  void ToHost(Stream& stream) {
    backend_.CopyToHost(host_.data(), device_.data(), sizeof(StepNumbers), stream);
  }

 private:
  Backend& backend_;
  Buffer host_;
  Buffer device_;
};

}  // namespace trainer
