// SPDX-License-Identifier: Apache-2.0
//
// The device's copy of a batch, and of the numbers that belong to its step.  There is room for two,
// and copies run on a stream of their own: one batch can come while another is in use.  On a back
// end that computes on the host nothing is copied: batches are used where they are.

#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "trainer/backend/backend.h"
#include "trainer/data/data_loader.h"
#include "trainer/model/network.h"
#include "trainer/train/step/step_scalars.h"

namespace trainer {

class DeviceBatch {
 public:
  // For batches as large as `spec` says.
  DeviceBatch(Backend& backend, const NetworkSpec& spec);

  // Starts to copy, over the batch before the last one, which must not be in use any more.  `batch`
  // must stay until arrived() is reached; on a host back end, until it has been used.  So must
  // `lambda`, mixup's weight of each of its images, or null for no mixup.
  void StartUpload(const HostBatch& batch, const float* lambda = nullptr);
  // The batch of the last StartUpload; makes later work of `stream` wait for it.  Starts the step's
  // numbers: told of the loss is what is given here, everything else is fresh.  They still have to
  // go to the device.  REQUIRES: the step before is done.
  InputBatch Use(float loss_scale, Stream& stream);
  SharedStepScalars& numbers() { return numbers_; }

  // The end of the last copy.
  Event& arrived() { return *arrived_; }

 private:
  struct Slot {
    Buffer pixels, mirror, labels, lambda;
  };

  Backend& backend_;
  const std::unique_ptr<Stream> copies_;
  const std::unique_ptr<Event> arrived_;
  std::array<Slot, 2> slots_;  // empty on a host back end
  std::size_t last_ = 0;       // of slots_
  InputBatch batch_;
  std::int64_t valid_ = 0;
  SharedStepScalars numbers_;
};

// Queues one forward pass of kInference on `input`, which DeviceBatch::Use has given.  Its sums are
// in numbers().host().loss_sums when it is done.
void QueueInference(Network& network, DeviceBatch& device_batch, const InputBatch& input,
                    Stream& stream);

// One forward pass of kInference on `batch`; waits for it.
LossSums Infer(Network& network, DeviceBatch& device_batch, const HostBatch& batch, Stream& stream);

}  // namespace trainer
