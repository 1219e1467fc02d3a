// SPDX-License-Identifier: Apache-2.0
//
// What a record cache (record_cache.h) is told, and what it tells.

#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace trainer {

struct RecordCacheOptions {
  std::string dir;              // private_directory.h; "": nothing is kept
  std::uint64_t max_bytes = 0;  // of all that is in it; 0: half of what is free or is in it
  // A set with a file that was changed less than this before is not kept: another change may have
  // the same time.
  std::chrono::nanoseconds settled = std::chrono::seconds(2);
  // How long to wait for a process that is removing the file of the set.
  std::chrono::milliseconds timeout = std::chrono::seconds(5);
};

struct RecordCacheUse {
  std::string path;             // of the file; "": the set is not kept
  std::uint64_t set_bytes = 0;  // of all records
  std::uint64_t bytes = 0;      // of these, that are there, by all processes
  std::uint64_t max_bytes = 0;  // of all sets together
  std::int64_t hits = 0;        // records that this process found there
  std::int64_t misses = 0;      // and did not
  std::string note;             // why no more is kept; "" if more is
};

}  // namespace trainer
