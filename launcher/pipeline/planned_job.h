// SPDX-License-Identifier: Apache-2.0
//
// The second step of the pipeline: makes the plan, out of the options, the allocation and the
// topology, and the files that are written from it.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/cli/options.h"
#include "launcher/cli/settings.h"
#include "launcher/placement/launch_plan.h"
#include "launcher/topology/node_topology.h"

namespace launcher {

struct PlannedJob {
  LaunchPlan plan;
  // One topology, to which all nodes are taken to be alike; their shims find out where one is not.
  // None where this machine is no node of the job (in the shell of salloc).
  std::vector<NodeTopology> topologies;
  std::string planned_for;                // see RankJob
  std::vector<std::string> hosts_of_job;  // see Allocation
  bool in_step = false;                   // see Allocation
  // The step of an earlier start still holds its resources: it could not be ended, or a node of it
  // is down.  Also true where a node was left out because a check has found it bad.
  bool has_lost_nodes = false;
  // How many nodes of the job may be lost or left out: the spare ones, with --min-nodes all but so
  // many.
  int dispensable_nodes = 0;
  int min_nodes = 0;          // what --min-nodes or the site says, where that can be had; else 0
  int restart_count = 0;      // which the ranks are told; the caller sets it
  std::string job_id;         // of Slurm; "" also where the user has named hosts outside the job
  std::string rankfile_text;  // of --rankfile with the names of Slurm, if it has others; else ""
  // The names of the nodes are Slurm's alone (NodeName=gpu1 NodeHostname=x7): neither what nodes
  // call themselves nor known to a name server.
  bool has_other_host_names = false;
  std::string first_address;      // of rank 0's node, where has_other_host_names; else ""
  bool has_remote_ranks = false;  // some rank is not on this machine
};

// Reads the allocation or the user's rankfile, reads the topology, and plans.  The plan leaves out
// `lost_nodes`, which are down or bad, and as many spare nodes as --spare-nodes says; where no
// spare takes the place of a lost one it has fewer ranks and says so in a warning.  REQUIRES: no
// more than dispensable_nodes are lost.  Throws LaunchError.
PlannedJob PlanJob(const Options& options, const Settings& settings, const Environment& environment,
                   const std::vector<std::string>& lost_nodes);

// The files of the run directory, which the commands name or people read: the text of each, by
// name.
std::map<std::string, std::string> FilesOf(const PlannedJob& planned);

}  // namespace launcher
