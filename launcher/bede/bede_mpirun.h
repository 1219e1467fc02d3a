// SPDX-License-Identifier: Apache-2.0
//
// bede-mpirun: from an allocation and the topology of its nodes to one command of Open MPI's
// mpirun.  Pure.
//
// What we decide goes to mpirun as variables in its environment, not as options: mpirun takes the
// option of the user over an MCA parameter, but refuses two hostfiles and passes over -npernode
// beside --map-by.  For the same reason there is no -n: without one mpirun fills the slots of the
// hosts, which are ours; with the user's it starts that many.  Hosts and slots are a hostfile,
// inside Slurm the variables of slurm_for_mpirun.h.
//
// PRRTE (Open MPI 5) takes the unit to map by from the one to bind to.  A mapping policy of ours
// would make it forget the user's --oversubscribe, so there is none but ":HWTCPUS", which makes
// CPUs of hardware threads.  It reads the rankfile of 1ppg by no variable, only by an option.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/allocation/allocation.h"
#include "launcher/base/environment.h"
#include "launcher/bede/bede_options.h"
#include "launcher/spawn/slurm_for_mpirun.h"
#include "launcher/spawn/spawner.h"
#include "launcher/topology/node_topology.h"

namespace launcher {

struct BedePlan {
  int ranks = 0;    // unless mpirun is told otherwise
  int threads = 1;  // OMP_NUM_THREADS
  std::vector<HostSlots> hosts;
  std::string rankfile;               // text; only for 1ppg
  std::vector<std::string> warnings;  // one line each with its code
};

// The text of HOSTFILE.
std::string HostfileText(const BedePlan& plan);

// All nodes of `allocation` are taken to be like `topology`; tasks that Slurm was asked for do not
// count.  threads: cores or hardware threads of the rank that has fewest.
// Throws LaunchError(EX_CONFIG) for 1ppg where a node has no GPU, or nobody says how many.
BedePlan PlanBede(const Allocation& allocation, const NodeTopology& topology, const BedePar& par);

struct BedeJob {
  BedePlan plan;
  BedePar par;
  std::string mpirun;  // path
  MpiRuntime mpi_runtime = MpiRuntime::kOrte;
  std::vector<std::string> mpi_arguments;            // of the site, before the user's
  std::vector<std::string> mpirun_words;             // the user's
  std::map<std::string, std::string> rank_settings;  // of the site, for every rank
  Environment environment;                           // the user's
  std::string rankfile;                              // of 1ppg: a path
  std::string hostfile;                              // outside Slurm: a path
  bool in_slurm = false;
  bool is_root = false;
};

// env NAME=value ... mpirun ... program.  An MCA parameter that the user has in the environment
// stays as it is.
ChildCommand MakeBedeCommand(const BedeJob& job);

}  // namespace launcher
