// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/deadlines.h"

#include <algorithm>

namespace launcher {

int MillisecondsLeft(const std::vector<Deadline>& deadlines,
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
