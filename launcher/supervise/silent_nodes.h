// SPDX-License-Identifier: Apache-2.0
//
// The nodes of a job that something is missing of.  Pure.  `hosts` is by rank; each node is named
// once, in the order of its first rank.

#pragma once

#include <set>
#include <string>
#include <vector>

namespace launcher {

// Those of which the program of some rank has not started.
std::vector<std::string> NodesNotStarted(const std::vector<std::string>& hosts,
                                         const std::set<int>& started);

// Those of which nobody has told that a rank ended there, while somebody did of others; none where
// nothing was told at all, since then something else is wrong.  `hosts_with_ends`: as srun writes
// them, "n[1-2]", with or without their domain.
std::vector<std::string> SilentNodes(const std::vector<std::string>& hosts,
                                     const std::set<std::string>& hosts_with_ends);

}  // namespace launcher
