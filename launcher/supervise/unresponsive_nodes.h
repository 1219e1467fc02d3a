// SPDX-License-Identifier: Apache-2.0
//
// Finds the nodes of a job from which something was not reported.  Pure.  `hosts` are those of the
// ranks; the result has each node once, in the order of its first rank.

#pragma once

#include <set>
#include <string>
#include <vector>

namespace launcher {

// The nodes of the ranks that are not in `started`.
std::vector<std::string> NodesNotStarted(const std::vector<std::string>& hosts,
                                         const std::set<int>& started);

// The nodes from which no end of a rank was reported, while it was from others.  None where no node
// has reported any, since the nodes are then not the reason.  `hosts_with_ends` are the nodes that
// have, as srun writes them: "n[1-2]", with or without their domain.
std::vector<std::string> SilentNodes(const std::vector<std::string>& hosts,
                                     const std::set<std::string>& hosts_with_ends);

}  // namespace launcher
