// SPDX-License-Identifier: Apache-2.0
//
// Who talks to whom in which round, so that every pair of nodes meets once and no node has two
// partners at a time (the circle method of round-robin tournaments).  Pure.

#pragma once

#include <vector>

namespace launcher {

// The partner of `node` in each round, -1 for a round without one.  For an even number of nodes
// there are nodes - 1 rounds, for an odd one as many as nodes; for one node none.
// partners(a)[r] == b means partners(b)[r] == a.
std::vector<int> PartnersByRound(int node, int nodes);

}  // namespace launcher
