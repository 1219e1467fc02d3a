// SPDX-License-Identifier: Apache-2.0
//
// The stacks of the ranks of a training as text for people.  Pure.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/control/stack_dump_request.h"

namespace ddlctl {

// What was heard of a rank.
struct RankAnswer {
  std::string host;
  std::int64_t pid = 0;
  std::optional<trainer::RankStackTraces> stacks;  // nullopt: it has not answered
  // Of one that has not: what Linux says of its process ("stopped"), where that can be seen.
  std::string state = {};
};

// The odd ones first: a line for each rank that has not answered within `seconds`, then each group
// of ranks whose main threads are in the same calls, the smallest first, with the stack of its
// lowest rank, without arguments and directories.  Two ranks are in the same calls if they are so
// down to the innermost function of ddltraind: what a library does while it waits differs from one
// moment to the next.
std::string GroupedStackTraces(const std::vector<RankAnswer>& ranks, double seconds);

// All threads of every rank, as it wrote them; first those that have not answered.
std::string AllStackTraces(const std::vector<RankAnswer>& ranks, double seconds);

}  // namespace ddlctl
