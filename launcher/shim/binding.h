// SPDX-License-Identifier: Apache-2.0
//
// Binds this process to the CPUs and the memory that the plan gives it.

#pragma once

namespace launcher {

struct Rejection {
  char text[256];  // "" when there is none
};

// Binds to `cpus` (OS numbers, "0-3,8") and reads the binding back.  It is refused when this node
// lacks one of the CPUs, or this job may not use it: the node is not as planned.
Rejection BindCpus(const char* cpus);

// How many CPUs this process may use; 0 where the kernel does not tell.
int CountUsableCpus();

// Makes new memory come from NUMA node `os_index` as long as that has any.  It is not bound
// strictly, since a rank that needs more than the node has would then be killed.  Where the kernel
// or a container does not permit it (EPERM, ENOSYS) nothing is done: the kernel itself prefers the
// NUMA node of the CPU that first writes to the memory.  It is refused for a node that is not
// there.
Rejection PreferMemoryOf(int os_index);

}  // namespace launcher
