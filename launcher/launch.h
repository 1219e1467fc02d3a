// SPDX-License-Identifier: Apache-2.0
//
// The two halves of ddlrun: from options to a plan, and from a plan to commands.  What main.cc
// starts, prints and waits for is made here.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launcher/environment.h"
#include "launcher/options.h"
#include "launcher/plan/plan.h"
#include "launcher/settings.h"
#include "launcher/spawn/spawner.h"
#include "launcher/supervise/command_output.h"
#include "launcher/topology/node_topology.h"

namespace launcher {

struct PlannedJob {
  Plan plan;
  // One for all nodes, which are taken to be alike until their shims know better; none where this
  // machine is no node of the job (the shell of salloc).
  std::vector<NodeTopology> topologies;
  std::string planned_for;        // see RankJob
  int allocated_nodes = 0;        // of the Slurm job, with those that run no rank
  bool in_step = false;           // see Allocation
  bool has_lost_nodes = false;    // some node of the job is left out because it is down
  int restart_count = 0;          // what ranks are told; the caller sets it
  std::string job_id;             // of Slurm, or "": also where hosts outside the job were named
  std::string rankfile_text;      // --rankfile where Slurm calls its hosts otherwise, else ""
  bool has_remote_ranks = false;  // some rank is not on this machine
};

// Reads the allocation (--rankfile, -H, -hostfile, Slurm, else this machine), the topology, and
// plans; on all nodes but `lost_nodes`, which are down, and --spare-nodes.  Throws LaunchError.
PlannedJob PlanJob(const Options& options, const Settings& settings, const Environment& environment,
                   const std::vector<std::string>& lost_nodes);

// How the ranks will be started.
struct Launch {
  SpawnerChoice choice;      // and why, "" when it was asked for
  std::string mpirun, srun;  // paths, "" for none
};

// Starts `srun --mpi=list`, which takes as long as reading the topology, so that both run at once.
// Null where srun is no choice or not in PATH.  Throws LaunchError as CommandOutput does.
std::unique_ptr<CommandOutput> AskSrun(const Options& options, const Settings& settings,
                                       const Environment& environment);

// Resolves `auto` and looks for srun, its PMIx (`mpi_list`: of AskSrun), and mpirun.  Throws
// LaunchError(EX_UNAVAILABLE, EX_CONFIG).
Launch ChooseLaunch(const Options& options, const Settings& settings, const PlannedJob& planned,
                    const Environment& environment, CommandOutput* mpi_list);

// The commands to start.  `program_directory` is ddlrun's own (bin); the shim is beside it.
std::vector<ChildCommand> MakeCommands(const Options& options, const Settings& settings,
                                       const PlannedJob& planned, const Launch& launch,
                                       const Environment& environment,
                                       const std::string& run_directory,
                                       const std::string& program_directory);

// The files of the run directory that the commands name or people read, by name.
std::map<std::string, std::string> FilesOf(const PlannedJob& planned);

// The commands as the user is shown them: a line "+ ..." each, of many ranks the first and a count.
std::string CommandsText(const std::vector<ChildCommand>& commands);

}  // namespace launcher
