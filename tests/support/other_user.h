// SPDX-License-Identifier: Apache-2.0
//
// For tests that need somebody else, with a file or a process of theirs.

#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace tests {

inline constexpr uid_t kNobody = 65534;

// Whether this process can become and give files to kNobody.  In a user namespace, as in a
// container without privileges, root may be the only user there is.
inline bool HasOtherUsers() {
  if (::geteuid() != 0) return false;
  std::ifstream map("/proc/self/uid_map");  // first id inside, first id outside, how many
  for (std::uint64_t first, outside, count; map >> first >> outside >> count;) {
    if (kNobody >= first && kNobody - first < count) return true;
  }
  return false;
}

}  // namespace tests
