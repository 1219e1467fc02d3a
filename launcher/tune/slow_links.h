// SPDX-License-Identifier: Apache-2.0
//
// Which link of which node is slow: pairs of nodes are measured on each way between them, and the
// fastest pair is what all are compared with.  Pure.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launcher/tune/measurements.h"

namespace launcher {

// Up to so many nodes every pair is measured; of more each node with the next one, round in a ring.
inline constexpr int kMaxNodesOfEveryPair = 5;
// A pair is slow if it takes this many times as long as the fastest.
inline constexpr double kSlowPair = 1.5;

// Indices of nodes.  None for fewer than two.
std::vector<std::pair<int, int>> PairsToMeasure(int nodes);

struct PairTime {
  int one = 0;
  int other = 0;
  std::vector<double> microseconds;  // none: the pair failed
};

// A line for each node of which every pair is slow or failed while others are not, "n3 is slow:
// ...", and for each other slow pair.  `way` is how it is told which way was measured, "eth1".
std::vector<std::string> SlowLinkReporter(const std::string& way,
                                          const std::vector<std::string>& hosts,
                                          const std::vector<PairTime>& pairs);

}  // namespace launcher
