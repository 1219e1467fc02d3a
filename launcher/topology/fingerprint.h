// SPDX-License-Identifier: Apache-2.0
//
// What of this machine a plan depends on, as a short text: the CPUs that this process may use, the
// CPUs of every NUMA node, the hardware threads of a core, the NVIDIA GPUs and their NUMA nodes.
// Where two nodes have the same, a plan for one is right for the other, and a rank need not spend
// milliseconds on hwloc to learn that.  Without the standard library, for the shim.

#pragma once

#include <limits.h>
#include <stddef.h>

namespace launcher {

// Of the sets of CPUs that are read from the kernel.  It refuses one that is smaller than its own;
// no machine has more.
inline constexpr size_t kMaxCpus = 8192;
inline constexpr size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;

struct Fingerprint {
  char text[8192];
};

// Reads this machine through `root` ("" is the live /sys).  "unknown" and a number of its own where
// sysfs does not tell, or the text would be too long, so that it equals no other.
void ReadFingerprint(const char* root, Fingerprint* fingerprint);

}  // namespace launcher
