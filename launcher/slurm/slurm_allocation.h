// SPDX-License-Identifier: Apache-2.0
//
// Reads what Slurm gave this job from the environment of the batch script or of the salloc shell.
// Nothing is guessed: what the variables do not say stays empty in the result, and two that
// contradict each other are a refusal.  Pure functions of their argument, safe from any thread.

#pragma once

#include <optional>

#include "launcher/allocation/allocation.h"
#include "launcher/slurm/slurm_variables.h"

namespace launcher {

// nullopt where there is no SLURM_JOB_ID: not inside Slurm.
//
// nodes    SLURM_JOB_NODELIST in Slurm's order, all components of a heterogeneous job one after
//          the other; its length must be SLURM_JOB_NUM_NODES, where that is set.
// slots    SLURM_TASKS_PER_NODE where tasks were asked for (SLURM_NTASKS is set), else
//          SLURM_NTASKS_PER_NODE, else empty: Slurm's default of one task per node or per CPU is
//          no wish of the user.  Inside a step of one task (srun --pty bash): empty.
// gpus     of every node: SLURM_GPUS_PER_NODE, or SLURM_GPUS_PER_TASK (since Slurm 24.11 that of
//          SLURM_TRES_PER_TASK) x tasks of the node. Of the host this runs on: SLURM_GPUS_ON_NODE;
//          such a variable says nothing about other hosts. Of the other of two nodes: SLURM_GPUS
//          minus that.  Else empty.
// ranks    SLURM_NTASKS (the sum over the components of a heterogeneous job).
//
// Throws LaunchError(EX_CONFIG) with the sbatch line to write: where SLURM_JOB_ID, the node list or
// the number of tasks is missing beside the others, malformed or longer than kMaxVariableBytes;
// where two variables contradict each other (both are named, with their values); and as one of
// several tasks of a step (`srun ddlrun`).  Any other variable that is missing, new or in no known
// form is as if it were not set; GPUs that would follow from it are then unclear.
std::optional<Allocation> ReadSlurmAllocation(const Environment& environment);

}  // namespace launcher
