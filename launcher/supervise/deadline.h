// SPDX-License-Identifier: Apache-2.0
//
// How long to wait when there are several deadlines, of which some may not be set.  Pure.

#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

namespace launcher {

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

// As poll wants it: milliseconds until the first of them, rounded up; 0 when it is over, -1 when
// none is set.
inline int MillisecondsLeft(const std::vector<Deadline>& deadlines,
                            std::chrono::steady_clock::time_point now) {
  Deadline first;
  for (const Deadline& deadline : deadlines) {
    if (deadline && (!first || *deadline < *first)) first = deadline;
  }
  if (!first) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*first - now);
  return std::max(0, static_cast<int>(left.count()));
}

}  // namespace launcher
