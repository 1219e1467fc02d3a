// SPDX-License-Identifier: Apache-2.0
//
// How much memory there is for one rank of a run.

#pragma once

#include <string>

#include "trainer/backend/backend.h"
#include "trainer/comm/communicator.h"
#include "trainer/core/host_memory.h"
#include "trainer/program/memory_estimate.h"

namespace trainer {

struct MemoryBudget {
  MemoryBytes bytes;
  std::string host_origin;  // HostMemory::origin
  bool is_host = true;      // the back end computes there
  int ranks_of_gpu = 1;     // whose equal part bytes.device is
  // "2 ranks share each GPU: each plans with 1/2 of what is free, 38.90 GB", the same on all ranks;
  // "" where none share one.
  std::string sharing;
};

// "15.40 GB", of 10^9 bytes.
std::string Gigabytes(double bytes);

// Of the device that `backend` computes on, all that is free, and of the host.
MemoryBudget QueryMemoryBudget(const Backend& backend, const HostMemory& host);

// Collective.  `own` as found on each rank; of ranks that share a GPU each gets an equal part of
// the least that one of them has found free, which is what was left beside what all of them had
// taken.  REQUIRES: QueryMemoryBudget came after all ranks had made their back ends; no rank takes
// more before this returns, as it does once all have found theirs.  `gpu` tells this rank's GPU, or
// its slice of one, from others of the machine; "" without one.
MemoryBudget ShareGpus(MemoryBudget own, const std::string& gpu, Communicator& communicator);

}  // namespace trainer
