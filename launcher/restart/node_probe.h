// SPDX-License-Identifier: Apache-2.0
//
// Finds out whether silent nodes are gone.  Slurm itself notices it after its SlurmdTimeout, which
// is five minutes by default, while the ranks on other nodes notice it within seconds.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "launcher/base/environment.h"

namespace launcher {

// Where more nodes are silent than this, the nodes are not the reason.
inline constexpr std::size_t kMaxProbes = 8;

// Runs a short step on each of `hosts` and on `other`, which are nodes of this job, at the same
// time. `srun` is its path.  Returns those of `hosts` on which the step did not run within `limit`.
// Returns none when it did not run on `other` either, a node that was not silent: then Slurm does
// not answer, or does not accept such a step.  Returns none, too, where `other` is "", when ddlrun
// is told to stop meanwhile, for more than kMaxProbes hosts, and in a heterogeneous job, where
// srun does not find the component of a node by its name.
std::vector<std::string> NodesThatDoNotAnswer(const std::vector<std::string>& hosts,
                                              const std::string& other, const std::string& srun,
                                              const Environment& environment,
                                              std::chrono::milliseconds limit);

}  // namespace launcher
