// SPDX-License-Identifier: Apache-2.0
//
// Collects ranks in the order a text names them and makes a Placement of them, or refuses with the
// place in the text: a rank twice, a gap, a broken invariant.  For one thread.

#pragma once

#include <vector>

#include "rankfile/placement.h"
#include "rankfile/scanner.h"

namespace rankfile {

class PlacementBuilder {
 public:
  // `where`: what a refusal of this rank points to.  REQUIRES: rank >= 0.
  void Add(int rank, PlacedRank placed, Position where);

  // Throws ParseError through `scanner`.  Call once.
  Placement Finish(const Scanner& scanner);

 private:
  struct Entry {
    int rank;
    PlacedRank placed;
    Position where;
  };
  std::vector<Entry> entries_;
};

}  // namespace rankfile
