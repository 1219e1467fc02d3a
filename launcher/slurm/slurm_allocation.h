// SPDX-License-Identifier: Apache-2.0
//
// Reads what Slurm has granted this job, from the environment of the batch script or of the shell
// of salloc.  Nothing is guessed: what the variables do not say stays empty in the result, and
// variables that contradict each other are refused.  Pure, safe from any thread.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/allocation/allocation.h"
#include "launcher/slurm/slurm_variables.h"

namespace launcher {

// nullopt where SLURM_JOB_ID is not set, since this is then not inside Slurm.
//
// nodes    SLURM_JOB_NODELIST in Slurm's order, the components of a heterogeneous job one after the
//          other.  There must be SLURM_JOB_NUM_NODES of them, where that is set.
// slots    SLURM_TASKS_PER_NODE where the user has asked for tasks (SLURM_NTASKS is set), else
//          SLURM_NTASKS_PER_NODE, else empty: Slurm itself then counts a task for each node or
//          CPU, which nobody has asked for.  Empty inside a step of one task (srun --pty bash).
// gpus     SLURM_GPUS_PER_NODE for every node, or the tasks of the node times
//          SLURM_GPUS_PER_TASK (since Slurm 24.11 a part of SLURM_TRES_PER_TASK).  For the node
//          that this runs on, and for no other, SLURM_GPUS_ON_NODE.  For the other one of two
//          nodes, SLURM_GPUS minus that.  Else empty.
// ranks    SLURM_NTASKS, the sum over the components of a heterogeneous job.
//
// Throws LaunchError(EX_CONFIG) with the line to write for sbatch: where the node list or the
// number of tasks is missing, where one of these or SLURM_JOB_ID is malformed or longer than
// kMaxVariableBytes, where two variables contradict each other, and inside one of several tasks of
// a step (`srun ddlrun`).  Any other variable that is missing or in no known form counts as not
// set; if the number of GPUs depends on it, that is unclear.
std::optional<Allocation> ReadSlurmAllocation(const Environment& environment);

// The part of slurm_allocation that is about GPUs.  Pure, safe from any thread.

// Fills in gpus and gpu_indices of `nodes`, whose hosts and slots are set.  These are the nodes of
// the job or, with a `suffix`, those of the component of a heterogeneous job whose variables end
// with it. Returns "", or why the variables do not say how many GPUs each node has
// (Allocation::gpus_unclear). Throws as ReadSlurmAllocation does.
std::string ReadGpus(const Environment& environment, const std::string& suffix,
                     std::vector<AllocatedNode>* nodes);

// How many GPUs a task of the job has (--gpus-per-task); nullopt where no variable says it.
std::optional<int> GpusPerTask(const Environment& environment);

}  // namespace launcher
