// SPDX-License-Identifier: Apache-2.0
//
// What ddlbench loader prints.  Pure.

#pragma once

#include <span>
#include <string>

#include "bench/microbenchmarks/loader.h"

namespace bench {

// A line that says what was measured on so many ranks, and a table: threads of a rank, images/s of
// all ranks together (the median of the rounds), those of one thread, min and max.  With a rate to
// take at, that median in percent of the ranks' rates, and the seconds of a round waited for input.
std::string FormatLoader(const LoaderOptions& options, std::span<const LoaderSpeeds> all,
                         int ranks);

}  // namespace bench
