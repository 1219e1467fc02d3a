// SPDX-License-Identifier: Apache-2.0
//
// The last step of planning: the cores and the memory of the ranks of one node.  Done by ddlrun for
// all nodes, and again by the shim of a rank on a node that is not like the one ddlrun saw.  Pure,
// safe from any thread.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/plan.h"
#include "launcher/topology/node_topology.h"

namespace launcher {

// Fills in cores, cpus and numa_os_index of `ranks`, all those of one node in the order of their
// local ranks, whose gpu is set.  `cpus_per_rank` is in hardware threads, or in cores;
// empty: an even share.
// Returns "", or why the ranks are left unbound: the node has too few cores.
std::string BindRanks(const NodeTopology& node, std::optional<int> cpus_per_rank,
                      bool cpus_are_cores, const std::vector<RankPlan*>& ranks);

// `cpus_per_rank`, hardware threads or cores, as whole cores of `topology`.
int CoresFor(int cpus_per_rank, bool cpus_are_cores, const NodeTopology& topology);

// Hardware threads of a core of `topology`, of the one with fewest, as any may be given.
int ThreadsPerCore(const NodeTopology& topology);

}  // namespace launcher
