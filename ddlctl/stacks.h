// SPDX-License-Identifier: Apache-2.0
//
// Where every rank of a training is right now: asked for, waited for, printed.

#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "ddlctl/session.h"

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

}  // namespace ddlctl
