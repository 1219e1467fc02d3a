// SPDX-License-Identifier: Apache-2.0
//
// The order of the nodes of a job in which neighbours share a switch or a block of the network.
// Pure, safe from any thread.

#pragma once

#include <string>

#include "launcher/allocation/allocation.h"

namespace launcher {

// Puts the nodes of one network unit after each other, on every level of network_path.  `first` is
// the node that stays in front, with its unit, where it is one of them: mpirun begins on the node
// that it runs on, and ddlrun chooses MASTER_PORT on its own.  Otherwise units and nodes are in the
// order in which they were.  REQUIRES: the nodes are of one component.
void OrderByNetwork(const std::string& first, Allocation* allocation);

// network_path as one word, "pod1.s3"; "" where it is not known.
std::string NetworkText(const AllocatedNode& node);

}  // namespace launcher
