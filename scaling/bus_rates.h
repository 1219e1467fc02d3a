// SPDX-License-Identifier: Apache-2.0
//
// The table that all_reduce_perf of nccl-tests prints, and `ddlbench allreduce` after it.  Pure.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scaling/links.h"

namespace scaling {

struct BusRateTable {
  std::vector<BusRate> rates;  // by bytes, ascending
  std::string problem;         // "LINE: what is wrong"; "" when there is none
};

// Lines that begin with '#' and empty ones are passed over.  Of the others the first column is the
// size in bytes and the eighth the bus bandwidth in GB/s, out of place.  Sizes that took no time to
// speak of (0.00 GB/s) are left out.  A problem: a line with fewer columns or without these
// numbers, sizes that do not grow, no line at all.
BusRateTable ParseBusRates(std::string_view text);

}  // namespace scaling
