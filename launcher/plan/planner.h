// SPDX-License-Identifier: Apache-2.0
//
// Decides which rank runs where, on which GPU, bound to which cores.  Pure: reads only its
// arguments; the same arguments give the same plan on every node of the job.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/allocation/allocation.h"
#include "launcher/plan/plan.h"
#include "launcher/topology/node_topology.h"

namespace launcher {

// kByNode: rank r+1 follows r on its node until the node is full.  kCyclic: rank r is on node r mod
// N, as IBM's ddlrun ranked them.
enum class RankOrder { kByNode, kCyclic };

struct PlanOptions {
  std::optional<int> ranks;           // -n; empty: the allocation's, or all slots
  std::optional<int> ranks_per_node;  // instead of the allocation's slots
  std::optional<int> gpus_per_node;   // --accelerators; 0: ranks get no GPU
  std::optional<int> cpus_per_rank;   // hardware threads; instead of the allocation's
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

// `topologies` has one entry per node of `allocation` in the same order; or a single one: all nodes
// are then taken to be like the first, in their topology and, where the allocation does not say, in
// the GPUs granted (not over components of a heterogeneous job); or none (salloc on a login node):
// ranks are then placed but not bound.
//
// How many: a node takes as many ranks as it has slots, else GPUs, else one; with a total given
//   (-n), a node without slots and GPUs takes up to one per core.  Nodes fill up in order.
// GPUs: local rank i gets the i-th granted GPU of its node in PCI order.
// Cores: those of the NUMA node nearest to the GPU are split evenly over its ranks; without GPUs
//   the node's cores are split evenly, each rank's share inside one NUMA node where that is
//   possible. With cpus_per_rank, each rank gets as many whole cores as that takes.
//   A node with too few cores for its ranks is not bound, and Plan::warnings says so.
//
// Throws LaunchError: EX_CONFIG when ranks do not fit the slots, GPUs, or the cores that
// options.cpus_per_rank takes, and when nobody says how many GPUs a node has; in a Slurm job of
// which the options say neither ranks nor GPUs also when tasks leave GPUs idle, or neither tasks
// nor GPUs were asked for though nodes have some. EX_USAGE for options that are out of range or
// contradict each other.
Plan MakePlan(const Allocation& allocation, const std::vector<NodeTopology>& topologies,
              const PlanOptions& options);

}  // namespace launcher
