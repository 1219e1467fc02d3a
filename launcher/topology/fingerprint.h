// SPDX-License-Identifier: Apache-2.0
//
// The fingerprint of a node is a short text of all that a plan depends on: the CPUs that this
// process may use, the CPUs of every NUMA node, the hardware threads of a core, the NVIDIA GPUs and
// their NUMA nodes.  Where two nodes have the same fingerprint, a plan for one is right for the
// other, and a rank need not spend milliseconds on hwloc to learn that.  The shim needs this, so it
// does without the C++ library.

#pragma once

#include <limits.h>
#include <stddef.h>

namespace launcher {

// The size of the CPU sets that we give to the kernel, which refuses a set that is smaller than its
// own.  No machine has more CPUs.
inline constexpr size_t kMaxCpus = 8192;
inline constexpr size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;

struct Fingerprint {
  char text[8192];
};

// Reads this machine.  `root` is put in front of /sys, for tests; "" is the machine itself.  Where
// /sys does not tell, or the text would be too long, it is "unknown" and a number, so that it
// equals no other fingerprint.
void ReadFingerprint(const char* root, Fingerprint* fingerprint);

}  // namespace launcher
