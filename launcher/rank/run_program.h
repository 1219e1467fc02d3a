// SPDX-License-Identifier: Apache-2.0
//
// The shim's last act.  Under the local launcher it becomes the program.  Under mpirun it stays in
// front of it and says how it ended, since mpirun does not always: the line goes to standard error,
// which mpirun carries from every node, and ddlrun reads it there (failure_report.h).

#pragma once

#include <string>

namespace launcher {

// execvp.  Throws LaunchError(EX_UNAVAILABLE) when `argv[0]` cannot be started.
[[noreturn]] void BecomeProgram(char* const* argv);

// Starts `argv` as a child in this process group, so that signals to the group reach it, and ends
// as it does: same exit code, same signal.  A failure is reported as FormatRankEnd has it, unless
// SIGTERM or SIGINT came first: then this rank is not the cause.  Throws as BecomeProgram does.
[[noreturn]] void RunProgram(char* const* argv, int rank, const std::string& host);

}  // namespace launcher
