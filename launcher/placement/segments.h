// SPDX-License-Identifier: Apache-2.0
//
// Whether the ranks of one segment share a block.  Slurm's topology/block places a job in segments
// of equally many nodes, each inside one block (sbatch --segment, SLURM_JOB_SEGMENT_SIZE).  Pure.

#pragma once

#include <string>

#include "launcher/placement/launch_plan.h"

namespace launcher {

// The first `nodes_per_segment` nodes of `plan` in the order of ranks are its first segment, the
// next as many the second one.  Says which is the first whose nodes are on several blocks, with
// its ranks, nodes and blocks; "" where there is none, or blocks are not known.
std::string TornSegment(const LaunchPlan& plan, int nodes_per_segment);

}  // namespace launcher
