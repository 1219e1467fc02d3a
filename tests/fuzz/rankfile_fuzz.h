// SPDX-License-Identifier: Apache-2.0
//
// What the fuzz targets of rankfile/ share.

#pragma once

#include <cstdlib>
#include <optional>

#include "rankfile/parse_error.h"

namespace rankfile {

// What `parse` returns; nullopt when it refuses.  Any other exception ends the run.
template <class Parse>
auto IfTaken(Parse parse) -> std::optional<decltype(parse())> {
  try {
    return parse();
  } catch (const ParseError&) {
    return std::nullopt;
  }
}

// Ends the run, as libFuzzer expects of a broken property, when the two values differ.
template <class Value>
void RequireSame(const Value& left, const Value& right) {
  if (!(left == right)) std::abort();
}

}  // namespace rankfile
