// SPDX-License-Identifier: Apache-2.0
//
// What scontrol says about GPUs.  `scontrol show job --details`: those that the job has on every
// node, for the cases in which no variable says it (the shell of salloc, GPUs spread unevenly over
// more than two nodes, the other components of a heterogeneous job).  `scontrol show node`: those
// that a node has, whoever uses them.  Pure, safe from any thread.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/allocation/allocation.h"

namespace launcher {

struct NodeGrant {
  int gpus = 0;
  std::vector<int> gpu_indices;  // in PCI order; empty: not said
};

// By host, from lines such as "Nodes=n[1-2] CPU_IDs=0-3 Mem=400 GRES=gpu:v100:4(IDX:0-3)".
// Throws LaunchError(EX_CONFIG) for such a line that cannot be read.
std::map<std::string, NodeGrant> ParseJobDetail(const std::string& text);

// Sets gpus and gpu_indices of every node, and clears gpus_unclear.  Throws LaunchError(EX_CONFIG)
// when `grants` lacks one.
void ApplyJobDetail(const std::map<std::string, NodeGrant>& grants, Allocation* allocation);

// CPUs of a node as Slurm counts them, from "   CPUAlloc=0 ... CPUTot=64 CPULoad=0.10"; 0: not
// said.
int CpusOfANode(const std::string& text);

// The most that a node has, from lines such as "   Gres=gpu:v100:4(S:0-1)"; lines that cannot be
// read count for nothing.
int MostGpusOfANode(const std::string& text);

}  // namespace launcher
