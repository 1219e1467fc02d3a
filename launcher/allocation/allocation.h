// SPDX-License-Identifier: Apache-2.0
//
// What the job was given: its hosts, their GPUs, and how many ranks each may run.  A value, which
// is made from Slurm's variables (slurm/slurm_allocation.h) or from what the user writes
// (host_allocation.h).

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace launcher {

// A larger number of GPUs on one node is taken for a typing error.
inline constexpr int kMaxGpusPerNode = 4096;

struct AllocatedNode {
  std::string host;         // as the scheduler or the user wrote it
  std::optional<int> gpus;  // granted; empty when only the node itself can tell
  // How many GPUs CUDA_VISIBLE_DEVICES names, where nobody has granted any; empty: it is not set.
  std::optional<int> gpus_visible;
  // Which of the node's GPUs these are, in the order in which ranks take them, as positions in the
  // PCI order; -1: one of which that is not known.  Empty where it is known of none.
  std::vector<int> gpu_indices;
  int component = 0;  // of a heterogeneous Slurm job, whose components may have different nodes
  // How many ranks were asked for on this node; empty: one per GPU, or one where there is no GPU.
  std::optional<int> slots;
  // The switches, blocks or rings of the network that it is in, the widest first, its own last.
  // Those that all nodes are in are left out, but for its own.  Empty where that is not known.
  std::vector<std::string> network_path;
};

struct Allocation {
  enum class Origin { kSlurm, kHostList, kHostfile, kThisMachine };
  Origin origin = Origin::kThisMachine;
  std::vector<AllocatedNode> nodes;       // in the scheduler's order; never empty
  std::optional<int> ranks;               // asked for in total (-n, --ntasks); empty: all slots
  std::optional<int> cpus_per_rank;       // --cpus-per-task
  bool cpus_are_cores = false;            // cpus_per_rank counts cores, not hardware threads
  std::string job_id;                     // empty outside a scheduler
  std::vector<std::string> hosts_of_job;  // in the scheduler's order, also those not in `nodes`
  bool slots_may_be_cores = false;        // where a node has GPUs they do not count
  bool in_step = false;                   // ddlrun itself runs in a step of srun
  // Why Slurm's variables do not say how many GPUs each node has, so that scontrol must be asked
  // (slurm/complete_allocation.h); "" where they do.
  std::string gpus_unclear;
  // How many GPUs a node has, where the job was granted none and scontrol was asked; otherwise 0.
  int gpus_per_node_unasked = 0;
  std::string network_unit;  // what network_path has: "switch", "block", "ring"; "" not known
  // For messages: "SLURM_JOB_NODELIST=n[1-2]", "-H a,b", "hostfile hosts.txt".
  std::string origin_text;
};

}  // namespace launcher
