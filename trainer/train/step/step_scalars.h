// SPDX-License-Identifier: Apache-2.0
//
// The few numbers that a step is told and those that it finds.  Kernels have them in device memory,
// the training loop in memory of the host; each way is one copy.

#pragma once

#include "trainer/backend/backend.h"
#include "trainer/backend/calls.h"

namespace trainer {

struct StepScalars {
  LossParameters loss;
  UpdateParameters update;
  LossSums loss_sums = {};
  UpdateSums update_sums = {};
};

class SharedStepScalars {
 public:
  explicit SharedStepScalars(Backend& backend)
      : backend_(backend),
        host_(backend.AllocateHost(sizeof(StepScalars))),
        device_(backend.AllocateDevice(sizeof(StepScalars))) {}

  // Not to be touched while a copy is queued.
  StepScalars& host() { return *reinterpret_cast<StepScalars*>(host_.data()); }
  StepScalars* device() { return reinterpret_cast<StepScalars*>(device_.data()); }

  // Both queue a copy of all of it on `stream`.
  void ToDevice(Stream& stream) {
    backend_.CopyToDevice(device_.data(), host_.data(), sizeof(StepScalars), stream);
  }
  void ToHost(Stream& stream) {
    backend_.CopyToHost(host_.data(), device_.data(), sizeof(StepScalars), stream);
  }

 private:
  Backend& backend_;
  Buffer host_;
  Buffer device_;
};

}  // namespace trainer
