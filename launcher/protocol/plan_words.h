// SPDX-License-Identifier: Apache-2.0
//
// A plan as words, as short as the plan is regular: what a thousand equal nodes have in common is
// written once.  The part of a rank job (rank_job.h) that grows with it.  Pure.
//
//   CPUS_PER_RANK NODES RANKS KINDS HOST_RUNS RANK_RUNS, then
//   for each kind of node       GPUS:RANKS and, for each of these ranks, GPU:NUMA:CORES:CPUS
//   for each run of hosts       NODES:KIND:PREFIX:FIRST:SUFFIX
//   for each run of ranks       NODE:NODES:RANKS
//
// GPU and NUMA are -1 for none; CORES is a number, CPUS are OS numbers as in 0-3,8-11, or "-".
// A run of hosts is that many nodes of one kind whose names differ in a number: n:08:- for n08,
// n09, n10; with "-" in place of FIRST it is one node.  A run of ranks has RANKS ranks on NODE, as
// many on the next, and so on for NODES nodes: 0:64:8 fills node by node, eight words 0:64:1 give
// ranks in turn.  Local ranks of a node are numbered in this order.

#pragma once

#include <string>

#include "launcher/plan/plan.h"
#include "launcher/protocol/words.h"

namespace launcher {

// More is no plan of ours.
inline constexpr int kMaxPlannedRanks = 1 << 20;

// REQUIRES: FindPlanError(plan) is "", but for what it says of cores and GPUs.
std::string EncodePlan(const Plan& plan);

// The inverse, to the end of `words`; the plan has what a rank needs (no warnings; `cores` has the
// right length only).  Throws std::out_of_range for words that EncodePlan did not write.
Plan DecodePlan(Words& words);

}  // namespace launcher
