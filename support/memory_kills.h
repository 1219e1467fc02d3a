// SPDX-License-Identifier: Apache-2.0
//
// Whether the kernel has killed processes of this control group because its memory was used up,
// which nobody tells the process, and its parent by the number of a signal alone.  Without the C++
// library, since the shim uses it.

#pragma once

#include <stddef.h>

namespace support {

struct MemoryKills {
  long long count = 0;        // processes of the group killed so far; -1: not known
  long long limit_bytes = 0;  // of the group and of those above it the least; 0: none, or not known
};

// Of the control group of this process, or of that with a number, by memory.events (version 2) or
// memory.oom_control (version 1, since Linux 4.13).  `root` is put in front of /proc and /sys, for
// tests.
MemoryKills ReadMemoryKills(const char* root, const char* process = "self");

// The beginning of DescribeMemoryKills.
inline constexpr char kMemoryKill[] = "the kernel killed ";

// "the kernel killed 1 process for memory (limit 80 MiB): give the job more (#SBATCH --mem)", of
// those since `before`; "" where there were none, or it is not known.
void DescribeMemoryKills(const MemoryKills& before, const MemoryKills& now, char* text,
                         size_t size);

}  // namespace support
