// SPDX-License-Identifier: Apache-2.0
//
// Shares the cores of one node out among its ranks, near their GPUs.  Pure, safe from any thread.

#pragma once

#include <vector>

#include "launcher/topology/node_topology.h"

namespace launcher {

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
