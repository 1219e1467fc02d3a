// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/pair_schedule.h"

namespace launcher {

std::vector<int> PartnersByRound(int node, int nodes) {
  std::vector<int> partners;
  if (nodes < 2) return partners;
  const int seats = nodes + nodes % 2;  // with a seat that nobody takes for an odd number
  const int circle = seats - 1;         // the last seat stays, the others move on round by round
  for (int round = 0; round < circle; ++round) {
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

}  // namespace launcher
