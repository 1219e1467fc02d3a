// SPDX-License-Identifier: Apache-2.0
//
// Open MPI's rankfile, "rank 0=host1     slot=0:0-9".  Grammar, what Open MPI 4.1 makes of it, and
// test vectors: rankfile/README.md, "Rankfile".  Pure functions, safe from any thread.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rankfile/placement.h"

namespace rankfile {

// Open MPI 4.1 copies a slot list into 64 bytes; a longer one aborts it.
inline constexpr std::size_t kMaxSlotListLength = 63;

// `hosts` is the allocation that "+n1" counts in; "+n0" is its first host.
// Throws ParseError naming `source`, line and column.
Placement ParseRankfile(std::string_view text, std::string_view source = "rankfile",
                        const std::vector<std::string>& hosts = {});

// One line per rank, in rank order, in ddlrun's form; only slot forms that Open MPI 4.1 reads as
// meant.  Throws std::invalid_argument when the placement breaks an invariant, has a rank without
// cores, or cores too scattered for kMaxSlotListLength.
std::string FormatRankfile(const Placement& placement);

}  // namespace rankfile
