// SPDX-License-Identifier: Apache-2.0
//
// How Open MPI's mpirun inside Slurm learns where ranks may go.  Pure.
//
// mpirun takes the hosts and their slots from SLURM_NODELIST and SLURM_TASKS_PER_NODE.  Slurm sets
// these to its own tasks per node, which is one when the job has asked for GPUs only.  So ddlrun
// gives mpirun other values of them.  A hostfile would not do (--mca ras ^slurm): mpirun would not
// know which nodes Slurm has, and its srun would start the daemons on the first nodes of the job,
// whatever the hostfile says.
//
// On the other nodes mpirun starts its daemons by srun.  A step that asks for no GPUs gets those
// that the job has asked for, which are other than those that it has: fewer or none with
// --exclusive, those of one task with --gpus-per-task, and with --gpus those of the whole job.  So
// ddlrun has this srun ask, by plm_slurm_args, for the GPUs that the plan counts on there.  (Seen
// with Slurm 22.05.)

#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/launch/mpirun_version.h"

namespace launcher {

struct HostSlots {
  std::string host;
  int slots = 1;
  int gpus = 0;       // that the job was granted there; 0: none, or not known
  int component = 0;  // of a heterogeneous job
};

// Runs a program with more variables, which are then a part of the command that users are shown.
inline constexpr char kEnv[] = "/usr/bin/env";

struct SlurmForMpirun {
  // The names of the variables that mpirun must not see (env -u), since its srun would read them as
  // well as the GPUs that it is told.  To set SLURM_TRES_PER_TASK to nothing would not do: the
  // daemons would get no GPU.  (Seen with Slurm 26.05.)
  std::vector<std::string> hidden;
  std::map<std::string, std::string> variables;
  // Of mpirun.  PRRTE takes plm_slurm_args only as an option: it removes the variable, because
  // Slurm sets it from 23.11 on.  (Seen with Open MPI 5.0.7 and Slurm 24.11.)
  std::vector<std::string> options;
  std::vector<std::string> mpirun_args;  // those that were given, with more arguments for srun
};

// What mpirun needs for `hosts`, which are nodes of the job in Slurm's order: a daemon takes its
// number from its place among the nodes of its step (SLURM_NODEID), and mpirun takes it to be on
// the node with that place in SLURM_NODELIST.  The job has `nodes_of_job` nodes, and `environment`.
// Where that, or `mpirun_args`, which are mpirun's options, has plm_slurm_args of the user, srun
// gets the nodes in addition to them, but no GPUs.  Throws LaunchError(EX_CONFIG) where daemons
// would have to be in several components of a heterogeneous job: they are one step, of one of them;
// and where the names of the nodes are longer than Linux passes in one variable or argument.
SlurmForMpirun MakeSlurmForMpirun(const std::vector<HostSlots>& hosts, std::size_t nodes_of_job,
                                  const Environment& environment, MpiRuntime runtime,
                                  const std::vector<std::string>& mpirun_args);

}  // namespace launcher
