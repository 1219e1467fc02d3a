// SPDX-License-Identifier: Apache-2.0
//
// The last step of planning: the binding of the ranks of one node (CPU affinity, memory).  ddlrun
// does it for all nodes; ddlrun-rank-check does it again on a node that is not like the one that
// ddlrun saw.  Pure, safe from any thread.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/placement/launch_plan.h"
#include "launcher/topology/node_topology.h"

namespace launcher {

// Fills in cores, cpus and numa_os_index of `ranks`, which are all ranks of one node in the order
// of their local ranks, with their gpu set.  `cpus_per_rank` counts hardware threads or, with
// `cpus_are_cores`, cores; without it each rank gets an even share.  Returns "", or why the ranks
// are left unbound: the node has too few cores.
std::string BindRanks(const NodeTopology& node, std::optional<int> cpus_per_rank,
                      bool cpus_are_cores, const std::vector<RankPlacement*>& ranks);

// How many whole cores of `topology` these `cpus_per_rank` hardware threads or cores are.
int CoresFor(int cpus_per_rank, bool cpus_are_cores, const NodeTopology& topology);

// The hardware threads of a core of `topology`.  Where cores differ it is the smallest number,
// since a rank may get any of them.
int ThreadsPerCore(const NodeTopology& topology);

// Shares the cores of one node out among its ranks, near their GPUs.  Pure, safe from any thread.

// The cores of each rank, as ascending indices into node.cores; no core is given twice.
// `gpu_of_rank` has one entry per rank: an index into node.gpus, or -1 for no (known) GPU.
// `cores_per_rank` is how many each rank gets, or 0 for an even share; where that does not come out
// even, the first ranks get one more.
//
// Each rank gets cores of the NUMA node of its GPU, if every rank has a GPU whose NUMA node has
// enough cores.  Otherwise each gets cores of one NUMA node, if all shares fit in that way;
// otherwise the shares are consecutive cores in the order of the NUMA nodes.  When the node has too
// few cores for that many ranks, every rank's list is empty.
std::vector<std::vector<int>> SplitCores(const NodeTopology& node,
                                         const std::vector<int>& gpu_of_rank, int cores_per_rank);

}  // namespace launcher
