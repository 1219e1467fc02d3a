// SPDX-License-Identifier: Apache-2.0
//
// Who talks to whom in which round.  No node has two partners at a time.  Pure.
//
// Up to kMostNodesOfAllPairs nodes every pair meets once (the circle method of round-robin
// tournaments).  Of more nodes the rounds 0, 1, 2, 4, 8, ... of that tournament are played, so that
// 4,096 nodes have 13 partners each: a node that does not talk fails with all of its own, and all
// nodes hang together, each a few steps from every other, for round 1 after round 0 leads two seats
// round the circle, round 4 after round 2 four, and so on.

#pragma once

#include <chrono>
#include <vector>

namespace launcher {

// All pairs of so many are met within ten seconds even where every round waits in vain.
inline constexpr int kMostNodesOfAllPairs = 64;

// How long a round waits for its partner before the next one starts beside it.
inline constexpr std::chrono::milliseconds kRoundPatience{100};

// The partner of `node` in each round, -1 for a round without one.  partners(a)[r] == b means
// partners(b)[r] == a.  For one node there is no round.
std::vector<int> PartnersByRound(int node, int nodes);

// Rounds of `nodes` nodes: the most partners that a node has.
int RoundsOf(int nodes);

// The time that all rounds take at most, where a pair that is not done `limit` after its start has
// failed.
std::chrono::milliseconds LongestTest(int nodes, std::chrono::milliseconds limit);

}  // namespace launcher
