// SPDX-License-Identifier: Apache-2.0
//
// Memory of a run: what one rank needs (pure, by the plan of its network), what there is for it,
// and whether it fits, found out before anything large is allocated.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/backend/backend.h"
#include "trainer/comm/communicator.h"
#include "trainer/core/host_memory.h"
#include "trainer/model/network_definition.h"
#include "trainer/train/config.h"

namespace trainer {

// Bytes of the GPU and of the host.  A back end that computes on the host has no other device.
struct MemoryBytes {
  std::size_t device = 0;
  std::size_t host = 0;

  bool FitInto(const MemoryBytes& room) const { return device <= room.device && host <= room.host; }
  bool operator==(const MemoryBytes&) const = default;
};

struct MemoryItem {
  std::string name;
  MemoryBytes bytes;
};

// What a run has beside its network.
struct RunMemory {
  bool is_host = true;              // where the back end computes (Backend::is_host)
  int ranks = 1;                    // of the run
  std::int64_t accumulate = 1;      // batches of a step
  std::int64_t host_batches = 0;    // that the sources of a rank hold in host memory
  std::int64_t device_batches = 2;  // in the memory of a GPU
  std::size_t host_records = 0;     // bytes of records that these sources read ahead
  int host_threads = 1;             // of the back end and of the sources
  bool rolls_back = false;          // to a checkpoint, which it reads beside the copy of the next
  bool replays = false;             // steps (train/step/replay_check.h)
};

// In the order in which people want them.
std::vector<MemoryItem> MemoryItems(const NetworkDefinition& plan, const RunMemory& run);
MemoryBytes Sum(const std::vector<MemoryItem>& deps);

// Of the images of one batch, with their labels and what mixup makes of each.
std::size_t InputBytes(const NetworkSpec& spec);

// The largest batch whose bytes fit into `room`, or 0.  `bytes_of` plans one: what it needs, or
// nullopt where it is so large that it cannot be planned; more images need no less.  Few are
// planned, as needs grow nearly linearly, and no more than 16: where they grow otherwise the batch
// fits, but one that is a little larger may fit, too.
std::int64_t LargestBatch(const std::function<std::optional<MemoryBytes>(std::int64_t)>& bytes_of,
                          const MemoryBytes& room, std::int64_t first_guess);

// A heading, a row for each part, their sum, `room`, and the largest batch, in GB.
std::vector<std::string> MemoryTable(const std::vector<MemoryItem>& deps, const MemoryBytes& room,
                                     std::int64_t largest_batch, bool is_host);

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

struct MemoryCheck {
  std::optional<NetworkDefinition>
      plan;                        // of the batch that was asked for; none where that is absurd
  std::vector<MemoryItem> deps;    // of the plan
  std::int64_t largest_batch = 0;  // on all ranks; only where it is `wanted` or `refusal` is not ""
  std::string rejection;           // what is wrong, on the lowest rank that lacks memory
  bool fits = true;                // on all ranks
};

// Collective.  `run` as run_memory.h has it; `host_batches` of it is of config.batch_size.
MemoryCheck CheckMemory(const TrainConfig& config, Backend& backend, const RunMemory& run,
                        const MemoryBudget& room, Communicator& communicator, bool wants_largest);

// For --dry_run: the table of run_memory.h; `full`: what the network's memory consists of as
// well. REQUIRES: there is a plan, and the largest batch was wanted or it does not fit.
std::vector<std::string> DescribeMemory(const MemoryCheck& check, const MemoryBudget& room,
                                        bool full);

// Collective.  Where it does not fit, throws Error(EX_CONFIG) with the refusal on the one rank that
// has it, which is to call Abort; the others wait for that.
void RequireMemory(const MemoryCheck& check, Communicator& communicator);

}  // namespace trainer
