// SPDX-License-Identifier: Apache-2.0
//
// Whether nodes of which nothing was heard are still there.  Slurm says so itself after its
// SlurmdTimeout, five minutes as a rule; the other ranks notice within seconds.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "launcher/base/environment.h"

namespace launcher {

// More silent nodes than this are no lost nodes: then something else is wrong.
inline constexpr std::size_t kMostProbes = 8;

// Runs a short step of Slurm on each of `hosts` and on `other`, nodes of this job, all at once;
// `srun` is its path.  Returns those of `hosts` on which it did not run within `limit`.  None when
// it did not run on `other` either, of which something was heard: then it is not the nodes, but
// Slurm that does not answer or does not take such a step.  None as well where `other` is "", when
// ddlrun is told to stop meanwhile, for more than kMostProbes, and for a heterogeneous job, whose
// components srun does not find by a name of a node.
std::vector<std::string> NodesThatDoNotAnswer(const std::vector<std::string>& hosts,
                                              const std::string& other, const std::string& srun,
                                              const Environment& environment,
                                              std::chrono::milliseconds limit);

}  // namespace launcher
