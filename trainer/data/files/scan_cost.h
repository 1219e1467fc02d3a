// SPDX-License-Identifier: Apache-2.0
//
// What it takes to find the records of a set (scan_cache.h).

#pragma once

#include <cstdint>
#include <string>

namespace trainer {

// What it took to find the records.
struct ScanCost {
  std::int64_t files = 0;    // in which they were found
  std::int64_t scanned = 0;  // of these, by this process
  std::int64_t headers = 0;  // that it read
  std::uint64_t bytes = 0;   // with the checksums beside them
  double seconds = 0;
  std::string note;  // why what was found is not kept; "" if it is, or need not be

  // Of two sets, the one after the other.
  ScanCost& operator+=(const ScanCost& other) {
    files += other.files;
    scanned += other.scanned;
    headers += other.headers;
    bytes += other.bytes;
    seconds += other.seconds;
    if (note.empty()) note = other.note;
    return *this;
  }
};

}  // namespace trainer
