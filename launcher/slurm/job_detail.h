// SPDX-License-Identifier: Apache-2.0
//
// Reads what scontrol says about the GPUs and CPUs of nodes.  Pure, safe from any thread.
//
// `scontrol show job --details` has the GPUs that the job was granted on every node.  It is asked
// where no variable says it: in the shell of salloc, for GPUs that are spread unevenly over more
// than two nodes, and for the other components of a heterogeneous job.  `scontrol show node` has
// the GPUs and CPUs of a node, whoever uses them.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/allocation/allocation.h"

namespace launcher {

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

}  // namespace launcher
