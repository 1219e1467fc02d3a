// SPDX-License-Identifier: Apache-2.0
//
// The second step of the pipeline: from options and what is around to a plan, and the files that
// tell of it.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/cli/options.h"
#include "launcher/cli/settings.h"
#include "launcher/plan/plan.h"
#include "launcher/topology/node_topology.h"

namespace launcher {

struct PlannedJob {
  Plan plan;
  // One for all nodes, which are taken to be alike until their shims know better; none where this
  // machine is no node of the job (the shell of salloc).
  std::vector<NodeTopology> topologies;
  std::string planned_for;                // see RankJob
  std::vector<std::string> hosts_of_job;  // see Allocation
  bool in_step = false;                   // see Allocation
  // Some node of the job is left out because it is down or bad, or a step that ran before could not
  // be ended: that step still holds what it had.
  bool has_lost_nodes = false;
  int restart_count = 0;          // what ranks are told; the caller sets it
  std::string job_id;             // of Slurm, or "": also where hosts outside the job were named
  std::string rankfile_text;      // --rankfile where Slurm calls its hosts otherwise, else ""
  bool has_remote_ranks = false;  // some rank is not on this machine
};

// Reads the allocation (--rankfile, -H, -hostfile, Slurm, else this machine), the topology, and
// plans; on all nodes but `lost_nodes`, which are down or bad, and --spare-nodes.  Throws
// LaunchError.
PlannedJob PlanJob(const Options& options, const Settings& settings, const Environment& environment,
                   const std::vector<std::string>& lost_nodes);

// The files of the run directory that the commands name or people read, by name.
std::map<std::string, std::string> FilesOf(const PlannedJob& planned);

}  // namespace launcher
