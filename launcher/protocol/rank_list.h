// SPDX-License-Identifier: Apache-2.0
//
// Lists of ranks, "0,3-5" or "all", as users write them (cli/option_values.h reads them).  The shim
// reads this header, so it does without the C++ library.

#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

namespace launcher {

// No list of ranks, and no word of a wrap, is longer.
inline constexpr size_t kMaxRankListBytes = 1000;
inline constexpr size_t kMaxWrapWordBytes = 4000;

// Whether `rank` is in `list`.  REQUIRES: it is one.
inline bool IsInRankList(const char* list, int rank) {
  if (strcmp(list, "all") == 0) return true;
  for (;;) {
    char* end = nullptr;
    const long first = strtol(list, &end, 10);
    const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
    if (rank >= first && rank <= last) return true;
    if (*end != ',') return false;
    list = end + 1;
  }
}

}  // namespace launcher
