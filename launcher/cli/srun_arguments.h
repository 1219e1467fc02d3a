// SPDX-License-Identifier: Apache-2.0
//
// The arguments that users and sites give for srun.  Pure.

#pragma once

#include <string>
#include <vector>

namespace launcher {

// Throws LaunchError(exit_code) where one of `words` is an option of srun by which ddlrun itself
// places and starts the ranks, or where srun would take what comes behind for a program.  `origin`:
// who gave it, for the message.
void RequireNoOwnArgument(const std::vector<std::string>& words, const std::string& origin,
                          int exit_code);

}  // namespace launcher
