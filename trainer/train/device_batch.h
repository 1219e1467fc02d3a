// SPDX-License-Identifier: Apache-2.0
//
// The device's copy of a batch.  One is enough for a loop that waits for each step.

#pragma once

#include <cstdint>

#include "trainer/backend/backend.h"
#include "trainer/data/source.h"
#include "trainer/model/network.h"

namespace trainer {

class DeviceBatch {
 public:
  // For batches as large as `spec` says.
  DeviceBatch(Backend& backend, const NetworkSpec& spec);

  // Queues the copy.  The result is valid until the next call; `batch` must stay until the copy is
  // done.
  InputBatch Upload(const HostBatch& batch, float mixup_lambda, Stream& stream);

 private:
  Backend& backend_;
  Buffer pixels_;
  Buffer mirror_;
  Buffer labels_;
};

}  // namespace trainer
