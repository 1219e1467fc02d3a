// SPDX-License-Identifier: Apache-2.0
//
// Hostlists: the compact host names of Slurm, "gpu[001-003,07],login1".  Grammar, order, limits and
// test vectors: rankfile/README.md, "Hostlist".  Pure functions, safe from any thread.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rankfile {

// Most hosts one list may name, as in Slurm; more is taken for a typing error.
inline constexpr std::size_t kMaxHosts = 65536;

// The hosts in Slurm's order; duplicates and leading zeros are kept.  "" gives none.  Blanks and
// line ends after the list are ignored.
// Throws ParseError, at the first bad character, naming `source` (such as SLURM_JOB_NODELIST).
std::vector<std::string> ExpandHostlist(std::string_view text,
                                        std::string_view source = "hostlist");

// The hostlist that Slurm would write: ExpandHostlist(CompressHostlist(h)) == h, and only the last
// number of a name is put in brackets, so that Slurm reads it too.
// Throws std::invalid_argument when a name is not a host name or there are more than kMaxHosts.
std::string CompressHostlist(const std::vector<std::string>& hosts);

}  // namespace rankfile
