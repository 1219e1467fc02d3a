// SPDX-License-Identifier: Apache-2.0
//
// How long to wait when there are several deadlines, of which some may not be set.  Pure.

#pragma once

#include <chrono>
#include <optional>
#include <vector>

namespace launcher {

using Deadline = std::optional<std::chrono::steady_clock::time_point>;

// As poll wants it: milliseconds until the first of them, rounded up; 0 when it is over, -1 when
// none is set.
int MillisecondsLeft(const std::vector<Deadline>& deadlines,
                     std::chrono::steady_clock::time_point now);

}  // namespace launcher
