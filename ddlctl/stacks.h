// SPDX-License-Identifier: Apache-2.0
//
// Where every rank of a training is right now: asked for, waited for, printed.

#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ddlctl/session.h"
#include "trainer/control/stack_dump_request.h"

namespace ddlctl {

// How long ranks have to answer, beside the time between two of their looks for orders.
inline constexpr double kStacksSeconds = 10;

struct StacksOptions {
  std::filesystem::path results_dir;
  bool all_threads = false;
  std::function<void(const std::string&)> print;  // the stacks
  std::function<void(const std::string&)> note;   // a line with its end, beside them
};

// Prints what all ranks have written, those that have not answered first.  Where rank 0 does not
// answer at its socket the others are asked without it.  Returns EX_OK, or EX_UNAVAILABLE where a
// rank has not answered.  Throws as Session::Ask; Error(EX_TEMPFAIL) where the training refuses.
// REQUIRES: session.is_within_reach().
int ShowStacks(Session& session, const StacksOptions& options);

// The stacks of the ranks of a training as text for people.  Pure.

// What a rank has reported.
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
