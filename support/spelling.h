// SPDX-License-Identifier: Apache-2.0
//
// "Did you mean ...?" for options and keys of every program.  Pure; std only.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace support {

// Fewest insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t EditDistance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, the first of several; "" when none is near enough to be meant
// (more than a third of the longer word differs).
std::string NearestSpelling(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace support
