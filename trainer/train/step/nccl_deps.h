// SPDX-License-Identifier: Apache-2.0
//
// What NCCL needs of a back end.

#pragma once

#include "trainer/backend/backend.h"
#include "trainer/comm/nccl_communicator.h"

namespace trainer {

// The few blocks of a sum get a multiprocessor as soon as a block of backward ends, instead of
// after all that backward has queued: what waits for the sum, on every rank, is the update.
inline NcclDeps MakeNcclDeps(Backend& backend) {
  return {backend.MakeHighPriorityStream(), backend.MakeEvent(), backend.MakeEvent()};
}

}  // namespace trainer
