// SPDX-License-Identifier: Apache-2.0
//
// How many data files stay open.  A set may have more than a process may open (RLIMIT_NOFILE,
// often 1,024): to open a file anew for each record costs a shared file system more than to read
// it.

#pragma once

#include <cstddef>

namespace trainer {

// In files: what a process may open, what it could raise that to, and what it has open.
struct OpenFileLimits {
  std::size_t soft = 0;
  std::size_t hard = 0;
  std::size_t open = 0;
};

struct OpenFileBudget {
  std::size_t soft = 0;   // the limit to set
  std::size_t files = 0;  // that may stay open
  bool operator==(const OpenFileBudget&) const = default;
};

// For `wanted` files, with 1,024 left for everything else, or half of the limit where that is less.
// The limit is raised as far as this takes it, and never lowered.  Pure.
OpenFileBudget BudgetOpenFiles(const OpenFileLimits& limits, std::size_t wanted);

// Sets the limit of this process by such a plan; how many of `wanted` files may stay open.
std::size_t RaiseOpenFileLimit(std::size_t wanted);

}  // namespace trainer
