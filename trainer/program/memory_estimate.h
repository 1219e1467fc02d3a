// SPDX-License-Identifier: Apache-2.0
//
// What one rank of a run needs of memory, by the plan of its network and a few numbers, and which
// batch fits.  Pure; nothing is allocated.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/model/network_definition.h"

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

}  // namespace trainer
