// SPDX-License-Identifier: Apache-2.0
//
// Reads a regular file into memory.  Not mapped: a mapped file that shrinks or sits on a bad disk
// is a SIGBUS, not an error message.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "trainer/core/error.h"

namespace trainer {

// The process lacks memory or file descriptors: no fault of the file.
class Shortage : public Error {
 public:
  using Error::Error;
};

// Throws Error(EX_OSERR) that names `path`, a Shortage among them; a missing file, one that is not
// regular, or one of more than `max_bytes` is an Error(EX_DATAERR).
std::vector<std::byte> ReadWholeBytes(
    const std::string& path, std::uint64_t max_bytes = std::numeric_limits<std::int64_t>::max());

}  // namespace trainer
