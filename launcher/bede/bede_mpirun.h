// SPDX-License-Identifier: Apache-2.0
//
// What bede-mpirun decides: makes of an allocation, and the topology of its nodes, one command of
// Open MPI's mpirun.  Pure.
//
// The decisions go to mpirun as variables in its environment and not as options, so that an option
// of the user overrules them: of two options mpirun would refuse the second hostfile, and ignore
// -npernode beside --map-by.  For the same reason there is no -n: mpirun then fills the slots of
// the hosts, unless the user says how many ranks there are.  Hosts and slots are in a hostfile, or
// inside Slurm in the variables of slurm_for_mpirun.h.
//
// PRRTE (Open MPI 5) maps ranks by the same unit to which it binds them.  It ignores
// --oversubscribe of the user where another mapping is set, so that none is set but ":HWTCPUS", by
// which hardware threads count as CPUs.  The rankfile of 1ppg it takes only as an option.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/allocation/allocation.h"
#include "launcher/base/environment.h"
#include "launcher/bede/bede_options.h"
#include "launcher/launch/launcher.h"
#include "launcher/launch/slurm_for_mpirun.h"
#include "launcher/topology/node_topology.h"

namespace launcher {

struct BedeLayout {
  int ranks = 0;    // unless the user gives mpirun another number
  int threads = 1;  // OMP_NUM_THREADS
  std::vector<HostSlots> hosts;
  std::string rankfile;               // the text of RANKFILE, only for 1ppg
  std::vector<std::string> warnings;  // one line each with its code
};

// The text of HOSTFILE.
std::string HostfileText(const BedeLayout& plan);

// All nodes of `allocation` are taken to be like `topology`.  The tasks that Slurm was asked for do
// not count.  BedeLayout::threads follows from the rank with the fewest cores or hardware threads.
// Throws LaunchError(EX_CONFIG) for 1ppg where a node has no GPU, or it is not known how many it
// has.
BedeLayout PlanBede(const Allocation& allocation, const NodeTopology& topology, const BedePar& par);

struct BedeJob {
  BedeLayout plan;
  BedePar par;
  std::string mpirun;  // path
  MpiRuntime mpi_runtime = MpiRuntime::kOrte;
  std::vector<std::string> mpi_arguments;  // of the site file, before those of the user
  std::vector<std::string> mpirun_args;    // of the user: mpirun's options and the program
  std::map<std::string, std::string> rank_settings;  // of the site file, for every rank
  Environment environment;                           // of the user
  std::string rankfile;                              // its path, for 1ppg
  std::string hostfile;                              // its path, outside Slurm
  bool in_slurm = false;
  bool is_root = false;
};

// The command "env NAME=value ... mpirun ... program".  An MCA parameter that the user has set in
// the environment stays as it is.
ChildCommand MakeBedeCommand(const BedeJob& job);

// What the program does when it is called as bede-mpirun.

// `arguments` are those of the program without its own name.  Returns the exit code.  Throws
// LaunchError.
int RunBedeMpirun(const std::vector<std::string>& arguments);

}  // namespace launcher
