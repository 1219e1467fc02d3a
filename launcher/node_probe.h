// SPDX-License-Identifier: Apache-2.0
//
// Whether nodes of which nothing was heard are still there.  Slurm says so itself after its
// SlurmdTimeout, five minutes as a rule; the other ranks notice within seconds.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "launcher/environment.h"

namespace launcher {

// More silent nodes than this are no lost nodes: then something else is wrong.
inline constexpr std::size_t kMostProbes = 8;

// Runs a short step of Slurm on each of `hosts`, nodes of this job, all at once; `srun` is its
// path.  Returns those on which it did not run within `limit`.  None when Slurm itself does not
// answer, when ddlrun is told to stop meanwhile, for more than kMostProbes, and for a heterogeneous
// job, whose components srun does not find by a name of a node.
std::vector<std::string> NodesThatDoNotAnswer(const std::vector<std::string>& hosts,
                                              const std::string& srun,
                                              const Environment& environment,
                                              std::chrono::milliseconds limit);

}  // namespace launcher
