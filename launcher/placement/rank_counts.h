// SPDX-License-Identifier: Apache-2.0
//
// The first half of planning: which GPUs of each node the job may use, and how many ranks the node
// runs.  Pure.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/allocation/allocation.h"
#include "launcher/placement/planner.h"
#include "launcher/topology/node_topology.h"

namespace launcher {

// What planning knows about one node of the allocation.
struct NodeResources {
  std::string host;
  const NodeTopology* topology = nullptr;  // nullptr: not known
  int granted = 0;                         // GPUs that the job has there
  std::vector<int> gpus;                   // that ranks may use; indices into topology->gpus
  bool gpus_known = false;                 // false: nobody says how many, `gpus` is empty
  std::optional<int> slots;                // ranks asked for on this node
};

// One entry per node of `allocation`, in its order.  See MakePlan.
std::vector<NodeResources> FindResources(const Allocation& allocation,
                                         const std::vector<NodeTopology>& topologies,
                                         const PlacementOptions& options);

// Ranks of each node of `nodes`; 0 for a node that is left out.  Throws as MakePlan does.
std::vector<int> CountRanks(const Allocation& allocation, const std::vector<NodeResources>& nodes,
                            const PlacementOptions& options);

}  // namespace launcher
