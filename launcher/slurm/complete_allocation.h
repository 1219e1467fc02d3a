// SPDX-License-Identifier: Apache-2.0
//
// Completes an allocation: asks scontrol what Slurm's variables do not say about the nodes of a
// job. Where they say it, nothing is asked.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/allocation/allocation.h"
#include "launcher/base/environment.h"

namespace launcher {

// Reads what scontrol says about the GPUs and CPUs of nodes.  Pure, safe from any thread.
//
// `scontrol show job --details` has the GPUs that the job was granted on every node.  It is asked
// where no variable says it: in the shell of salloc, for GPUs that are spread unevenly over more
// than two nodes, and for the other components of a heterogeneous job.  `scontrol show node` has
// the GPUs and CPUs of a node, whoever uses them.
struct NodeGrant {
  int gpus = 0;
  std::vector<int> gpu_indices;  // in PCI order; empty where it is not said which they are
};

// The grants by host, from lines such as "Nodes=n[1-2] CPU_IDs=0-3 Mem=400
// GRES=gpu:v100:4(IDX:0-3)". Throws LaunchError(EX_CONFIG) for a line of this kind that cannot be
// read.  Where `number` is that of an array's last task, the text has its other tasks too: only
// what is of job `number`, or a component of it, counts.
std::map<std::string, NodeGrant> ParseJobDetail(const std::string& text, const std::string& number);

// The state of job `number` where it has ended, such as "CANCELLED"; "" where it has not, or is
// just ending, or the text does not say it.  In the shell of salloc ddlrun may be started after the
// end.
std::string StateOfEndedJob(const std::string& text, const std::string& number);

// Sets gpus and gpu_indices of every node, and clears gpus_unclear.  Throws LaunchError(EX_CONFIG)
// for a node that `grants` does not have.
void ApplyJobDetail(const std::map<std::string, NodeGrant>& grants, Allocation* allocation);

// How many CPUs Slurm counts on a node, from a line such as "   CPUAlloc=0 ... CPUTot=64
// CPULoad=0.10"; 0 where no line says it.
int CpusOfANode(const std::string& text);

// Where Slurm finds a node, from a line such as "   NodeAddr=10.1.2.3 NodeHostName=x7
// Version=24.11.5"; "" where no line says it.
std::string AddressOfANode(const std::string& text);

// The most GPUs that a node has, from lines such as "   Gres=gpu:v100:4(S:0-1)".  Lines that cannot
// be read are ignored.
int MaxGpusOfANode(const std::string& text);

// Asks how many GPUs the job has on each node, where no variable says it
// (Allocation::gpus_unclear). Throws LaunchError(EX_CONFIG) when scontrol does not answer, or says
// that the job has ended.
void QuerySlurmForGpus(const Environment& environment, Allocation* allocation);

// Asks how many GPUs a node has, for a job that has asked for neither GPUs nor tasks, and sets
// gpus_per_node_unasked.
void LookForForgottenGpus(const Environment& environment, Allocation* allocation);

// Asks how many CPUs Slurm counts on a node, for a job that has asked for CPUs per task.  Sets
// cpus_are_cores where these are as many as the node has cores; the node has `threads` hardware
// threads, `threads_per_core` in each core.
void LookWhatACpuIs(int threads, int threads_per_core, const Environment& environment,
                    Allocation* allocation);

// The address of a node, as Slurm has it; "" where scontrol does not say it.
std::string QuerySlurmForAddress(const std::string& host, const Environment& environment);

}  // namespace launcher
