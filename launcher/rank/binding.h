// SPDX-License-Identifier: Apache-2.0
//
// Binds this process to the CPUs and the memory that the plan gives it.

#pragma once

#include <vector>

namespace launcher {

// Binds to `cpus` (OS numbers) and reads the binding back.  Throws LaunchError(EX_CONFIG) when the
// node lacks one of them or this job may not use it: the nodes differ from what was planned.
void BindCpus(const std::vector<int>& cpus);

// New memory comes from NUMA node `os_index` while it has any: preferred, not strict, since a rank
// that needs more than its node has would be killed otherwise.  A kernel or container that does not
// permit it (EPERM, ENOSYS) is tolerated: first touch does nearly the same.  Throws
// LaunchError(EX_CONFIG) for a node that is not there.
void PreferMemoryOf(int os_index);

}  // namespace launcher
