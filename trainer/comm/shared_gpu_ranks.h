// SPDX-License-Identifier: Apache-2.0
//
// Which ranks of a job compute on the same GPU.

#pragma once

#include <string>
#include <vector>

#include "trainer/comm/communicator.h"

namespace trainer {

// Collective.  For each rank the lowest one that computes on the same GPU, often itself; itself for
// a rank that computes without one.  `gpu`: what this rank's machine calls its own, "" without one;
// the same name on two machines is of two GPUs, in two containers of one machine of one.
std::vector<int> FirstRanksOfGpus(Communicator& communicator, const std::string& gpu);

}  // namespace trainer
