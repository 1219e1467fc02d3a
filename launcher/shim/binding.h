// SPDX-License-Identifier: Apache-2.0
//
// Binds this process to the CPUs and the memory that the plan gives it.

#pragma once

namespace launcher {

struct Refusal {
  char text[256];  // "" when there is none
};

// Binds to `cpus` (OS numbers, "0-3,8") and reads the binding back.  Refused when the node lacks
// one of them or this job may not use it: the nodes differ from what was planned.
Refusal BindCpus(const char* cpus);

// How many CPUs this process may use; 0 where the kernel does not tell.
int CountUsableCpus();

// New memory comes from NUMA node `os_index` while it has any: preferred, not strict, since a rank
// that needs more than its node has would be killed otherwise.  A kernel or container that does not
// permit it (EPERM, ENOSYS) is tolerated: first touch does nearly the same.  Refused for a node
// that is not there.
Refusal PreferMemoryOf(int os_index);

}  // namespace launcher
