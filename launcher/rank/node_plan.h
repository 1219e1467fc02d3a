// SPDX-License-Identifier: Apache-2.0
//
// The cores of the ranks of this node, where it is not like the one that ddlrun planned for, or
// ddlrun saw none.  Two programs are made from the shim's sources: ddlrun-rank, which starts in a
// fraction of a millisecond, becomes ddlrun-rank-hwloc here, which reads the topology and plans.

#pragma once

#include "launcher/plan/plan.h"

namespace launcher {

// Sets cores, cpus and numa_os_index of all ranks of `plan` on node `node`, this one.  `argv` is
// the shim's own.  Throws LaunchError.
void PlanThisNode(int node, char** argv, Plan* plan);

}  // namespace launcher
