// SPDX-License-Identifier: Apache-2.0
//
// What the job was given: hosts, and how many ranks each may run.  A value; made by
// slurm_allocation or host_allocation.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace launcher {

// More GPUs on one node are taken for a typing error.
inline constexpr int kMaxGpusPerNode = 4096;

struct AllocatedNode {
  std::string host;         // as the scheduler or the user wrote it
  std::optional<int> gpus;  // granted; empty when only the node itself can tell
  // What CUDA_VISIBLE_DEVICES leaves of them, where none were granted; empty: all.
  std::optional<int> gpus_visible;
  // Which of the node's GPUs, by PCI order, as ranks take them; -1: one that is not known; empty:
  // none is known.
  std::vector<int> gpu_indices;
  int component = 0;  // of a heterogeneous Slurm job; nodes of another one may differ
  // Ranks asked for on this node; empty: one per GPU, or one where there is none.
  std::optional<int> slots;
};

struct Allocation {
  enum class Origin { kSlurm, kHostList, kHostfile, kThisMachine };
  Origin origin = Origin::kThisMachine;
  std::vector<AllocatedNode> nodes;  // in the scheduler's order; never empty
  std::optional<int> ranks;          // asked for in total (-n, --ntasks); empty: all slots
  std::optional<int> cpus_per_rank;  // --cpus-per-task
  bool cpus_are_cores = false;       // in it, where Slurm calls a core of several threads one CPU
  std::string job_id;                // empty outside a scheduler
  std::vector<std::string> hosts_of_job;  // in the scheduler's order, with those that -H left out
  bool in_step = false;                   // ddlrun itself runs in a step of srun
  // Why the GPUs of some nodes can only be learned from Slurm itself (job_detail.h); "": no need.
  std::string gpus_unclear;
  // GPUs of a node of the job, where it was granted none and that was looked up; else 0.
  int gpus_per_node_unasked = 0;
  // For messages: "SLURM_JOB_NODELIST=n[1-2]", "-H a,b", "hostfile hosts.txt".
  std::string origin_text;
};

}  // namespace launcher
