// SPDX-License-Identifier: Apache-2.0
//
// Which node talks to which in which round.  No node has two partners at a time.  Pure.
//
// Up to kMaxNodesOfAllPairs nodes, every pair meets once, by the circle method of round-robin
// tournaments.  For more nodes only the rounds 0, 1, 2, 4, 8, ... of the tournament are played, so
// that 4,096 nodes have 13 partners each.  A node that cannot talk then fails with all of its
// partners.  The nodes also stay connected, with few steps from each to every other: from a node to
// its partner in round 0, and on to the partner of that one in round 1, is two seats round the
// circle, by the rounds 2 and 4 it is four seats, and so on.

#pragma once

#include <chrono>
#include <vector>

namespace launcher {

// All pairs of this many nodes meet within ten seconds, even if every round waits in vain.
inline constexpr int kMaxNodesOfAllPairs = 64;

// How long a node waits for its partner in a round before it begins the next round as well.
inline constexpr std::chrono::milliseconds kRoundTimeout{100};

// The partner of `node` in each round; -1 in a round without one.  If b is the partner of a in a
// round, a is that of b.  A single node has no rounds.
std::vector<int> PartnersByRound(int node, int nodes);

// The number of rounds of `nodes` nodes, which is also the most partners that a node has.
int RoundsOf(int nodes);

// How long all rounds take at most, if a pair fails that is not done `limit` after its start.
std::chrono::milliseconds LongestTest(int nodes, std::chrono::milliseconds limit);

}  // namespace launcher
