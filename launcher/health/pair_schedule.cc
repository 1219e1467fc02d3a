// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/pair_schedule.h"

namespace launcher {
namespace {

// The nodes sit on a circle, which has an odd number of seats.  Of an even number of nodes the last
// one sits outside of it.
int SeatsOnCircle(int nodes) { return nodes + nodes % 2 - 1; }

// The rounds of the tournament that are played.
std::vector<int> Rounds(int nodes) {
  std::vector<int> rounds;
  if (nodes < 2) return rounds;
  const int all = SeatsOnCircle(nodes);
  for (int round = 0; round < all;) {
    rounds.push_back(round);
    const bool plays_all = nodes <= kMaxNodesOfAllPairs || round == 0;
    round = plays_all ? round + 1 : 2 * round;
  }
  return rounds;
}

}  // namespace

std::vector<int> PartnersByRound(int node, int nodes) {
  const int circle = SeatsOnCircle(nodes);
  std::vector<int> partners;
  for (const int round : Rounds(nodes)) {
    int partner = 0;
    if (node == circle) {
      partner = round;
    } else if (node == round) {
      partner = circle;
    } else {
      // a + b = 2 * round (mod circle)
      partner = (2 * round - node + 2 * circle) % circle;
    }
    partners.push_back(partner < nodes ? partner : -1);
  }
  return partners;
}

int RoundsOf(int nodes) { return static_cast<int>(Rounds(nodes).size()); }

std::chrono::milliseconds LongestTest(int nodes, std::chrono::milliseconds limit) {
  return RoundsOf(nodes) * kRoundTimeout + limit;
}

}  // namespace launcher
