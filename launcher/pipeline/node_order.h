// SPDX-License-Identifier: Apache-2.0
//
// In which order the nodes of a Slurm job get their ranks (--rank-order): by what Slurm knows of
// the network between them.

#pragma once

#include <memory>
#include <string>

#include "launcher/allocation/allocation.h"
#include "launcher/base/environment.h"
#include "launcher/cli/settings.h"
#include "launcher/placement/launch_plan.h"
#include "launcher/slurm/network_topology.h"

namespace launcher {

// Asks Slurm how the nodes are connected, where the answer may matter; otherwise null: outside of
// Slurm, on a single node, in heterogeneous jobs, and where Slurm's variables say that the topology
// is flat.  Where the job has segments (SLURM_JOB_SEGMENT_SIZE) Slurm is always asked, as for
// --rank-order=topology, and for the topology of the partition.  Throws LaunchError as
// CommandOutput does.
std::unique_ptr<NetworkQuestion> QueryNetwork(const Settings& settings,
                                              const Allocation& allocation,
                                              const Environment& environment);

// Waits for the answer to `question`, which may be null, and keeps it in `allocation`.  Puts the
// nodes in the order of the topology, with the node of ddlrun and its neighbours in front, unless
// the user has given an order (-H, -hostfile, --rank-order=node).  Without an answer they stay as
// they are.
void OrderNodes(const Settings& settings, const Environment& environment, NetworkQuestion* question,
                Allocation* allocation);

// Adds warnings to `plan`: --rank-order=topology had no effect, since `question` found no topology;
// a segment is torn.
void WarnOfOrder(const Settings& settings, const Environment& environment,
                 const NetworkQuestion* question, LaunchPlan* plan);

}  // namespace launcher
