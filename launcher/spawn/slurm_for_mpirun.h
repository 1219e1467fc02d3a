// SPDX-License-Identifier: Apache-2.0
//
// How Open MPI's mpirun inside Slurm learns where ranks may go.  Pure.
//
// It takes hosts and slots from SLURM_NODELIST and SLURM_TASKS_PER_NODE, where Slurm writes its own
// tasks per node (one, when only GPUs were asked for).  These are set anew for mpirun alone. A
// hostfile in their place (--mca ras ^slurm) is no way: mpirun then does not know which nodes Slurm
// has, and lets srun start its daemons on the first ones, whatever the hostfile says.
//
// In a job of --gpus or --gpus-per-task that srun would ask for the GPUs of the whole job, or for
// those of one task: --gpus of plm_slurm_args are those of all nodes but this one, on which mpirun
// needs no srun.  (Seen with Slurm 22.05.)

#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/spawn/mpirun_version.h"

namespace launcher {

struct HostSlots {
  std::string host;
  int slots = 1;
};

// Runs a program with more variables; what it is given is shown with the command.
inline constexpr char kEnv[] = "/usr/bin/env";

// The variables for `hosts`, which are nodes of the job whose `environment` this is.
std::map<std::string, std::string> SlurmVariablesForMpirun(const std::vector<HostSlots>& hosts,
                                                           const Environment& environment,
                                                           MpiRuntime runtime);

// The names of those that mpirun must not see (env -u): its srun would read them beside --gpus.  An
// empty SLURM_TRES_PER_TASK is no way: the daemons then get no GPU.  (Seen with Slurm 26.05.)
std::vector<std::string> SlurmVariablesAgainstMpirun(const Environment& environment,
                                                     MpiRuntime runtime);

// Options of mpirun beside them.  PRRTE takes plm_slurm_args as an option only: it removes the
// variable, since Slurm sets that from 23.11 on.  (Seen with Open MPI 5.0.7 and Slurm 24.11.)
std::vector<std::string> SlurmOptionsForMpirun(const Environment& environment, MpiRuntime runtime);

}  // namespace launcher
