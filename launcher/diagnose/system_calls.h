// SPDX-License-Identifier: Apache-2.0
//
// Names of the system calls in which programs wait, and what their arguments are.  Pure.

#pragma once

#include <cstdint>

namespace launcher {

struct SystemCall {
  enum class Argument {
    kNone,
    kDescriptor,  // the first one is a file descriptor
    kPath,        // the first one points to a path
    kPathAt,      // the second one does, from the directory of the first
    kCount,       // the first one says how many descriptors the second one points to
  };
  std::int64_t number;
  const char* name;
  Argument argument;
};

// nullptr for one that is not in the table.
const SystemCall* FindSystemCall(std::int64_t number);

}  // namespace launcher
