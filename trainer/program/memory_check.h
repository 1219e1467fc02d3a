// SPDX-License-Identifier: Apache-2.0
//
// Whether a run fits into memory, found out before anything large is allocated: a batch that does
// not is refused with what it needs, what there is, and the largest batch that fits.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/program/memory_budget.h"
#include "trainer/program/memory_estimate.h"
#include "trainer/train/config.h"

namespace trainer {

struct MemoryCheck {
  std::optional<NetworkDefinition>
      plan;                        // of the batch that was asked for; none where that is absurd
  std::vector<MemoryItem> deps;    // of the plan
  std::int64_t largest_batch = 0;  // on all ranks; only where it is `wanted` or `refusal` is not ""
  std::string rejection;           // what is wrong, on the lowest rank that lacks memory
  bool fits = true;                // on all ranks
};

// Collective.  `run` as memory_estimate.h has it; `host_batches` of it is of config.batch_size.
MemoryCheck CheckMemory(const TrainConfig& config, Backend& backend, const RunMemory& run,
                        const MemoryBudget& room, Communicator& communicator, bool wants_largest);

// For --dry_run: the table of memory_estimate.h; `full`: what the network's memory consists of as
// well. REQUIRES: there is a plan, and the largest batch was wanted or it does not fit.
std::vector<std::string> DescribeMemory(const MemoryCheck& check, const MemoryBudget& room,
                                        bool full);

// Collective.  Where it does not fit, throws Error(EX_CONFIG) with the refusal on the one rank that
// has it, which is to call Abort; the others wait for that.
void RequireMemory(const MemoryCheck& check, Communicator& communicator);

}  // namespace trainer
