// SPDX-License-Identifier: Apache-2.0
//
// Decides which rank runs where, on which GPU, bound to which cores.  Pure: reads only its
// arguments; the same arguments give the same plan on every node of the job.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/allocation/allocation.h"
#include "launcher/placement/launch_plan.h"
#include "launcher/topology/node_topology.h"

namespace launcher {

// kByNode: rank r+1 is on the node of rank r until that is full.  kCyclic: the ranks are dealt out
// to the nodes in turn, as by IBM's ddlrun.
enum class RankOrder { kByNode, kCyclic };

struct PlacementOptions {
  std::optional<int> ranks;           // -n; empty: as many as the allocation says, or has slots
  std::optional<int> ranks_per_node;  // takes the place of the slots of the allocation
  std::optional<int> gpus_per_node;   // --accelerators; 0: ranks get no GPU
  std::optional<int> cpus_per_rank;   // in hardware threads; takes the place of the allocation's
  bool oversubscribe = false;         // more ranks than slots, GPUs or cores is no error
  bool bind = true;                   // false: no rank is bound to cores
  RankOrder order = RankOrder::kByNode;

  // What DDL is told about the machine room.  aisles x racks x nodes per rack must be the number of
  // nodes of the plan.
  std::string mode = "p";             // one of b n r m c p
  std::optional<int> nodes_per_rack;  // empty: the nodes divided by racks x aisles
  int racks = 1;                      // per aisle
  int aisles = 1;
};

// `topologies` has one entry for each node of `allocation`, in the same order.  With a single entry
// all nodes are taken to be like the first: in their topology and, where the allocation does not
// say it, in the number of their GPUs (but not those of another component of a heterogeneous job).
// Without an entry, as in the shell of salloc on a login node, ranks are placed but not bound.
//
//   ranks   A node takes as many ranks as it has slots; without slots, as it has GPUs; and without
//           GPUs one, or with a given total (-n) up to one per core.  Nodes are filled in order.
//   GPUs    Local rank i gets the i-th of the granted GPUs of its node, in PCI order.
//   cores   The cores of the NUMA node nearest to a GPU are split evenly over the ranks of its
//           GPUs.  Without GPUs the cores of the node are split evenly, where possible so that the
//           share of each rank is inside one NUMA node.  With cpus_per_rank, each rank gets as many
//           whole cores as that takes.  On a node with too few cores for its ranks they are not
//           bound, and LaunchPlan::warnings says so.
//
// Throws LaunchError.  EX_CONFIG: the ranks do not fit the slots, the GPUs, or the cores that
// options.cpus_per_rank takes; nobody says how many GPUs a node has; and in a Slurm job, unless the
// options say how many ranks or GPUs are wanted, its tasks would leave GPUs idle, or the job has
// asked for neither tasks nor GPUs though its nodes have GPUs.  EX_USAGE: an option is out of
// range, or two of them contradict each other.
LaunchPlan MakePlan(const Allocation& allocation, const std::vector<NodeTopology>& topologies,
                    const PlacementOptions& options);

}  // namespace launcher
