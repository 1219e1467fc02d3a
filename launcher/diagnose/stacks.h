// SPDX-License-Identifier: Apache-2.0
//
// The functions that the ranks of a node are in, as tools tell that are there, in PATH or in that
// of the rank: py-spy of Python, which does not stop it; eu-stack (elfutils) or gdb of anything
// else, which hold a process for the moment in which they look at it.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/diagnose/facts.h"

namespace launcher {

// Fills in the stack of the focus of each rank, and of a few workers of one that waits for a worker
// (finding.h), some at a time, until the deadline.  `variables_of`
// is the environment of a process; null: not known.
void AddStacks(const Environment& environment,
               const std::function<const Environment*(pid_t)>& variables_of,
               std::chrono::steady_clock::time_point deadline, NodeFacts* facts);

// The functions of the main thread, the innermost first, in the answer of `py-spy dump --json`;
// none in any other text.  Pure.
std::vector<std::string> ParsePySpy(std::string_view text, int pid);

// The functions of the first thread, the innermost first, in the answer of `eu-stack -m` or of bt
// of gdb, without those of the C library at both ends: "MPI_Recv (libmpi.so.40)", and "main
// (job.cc:12)" where the place in the source is known.  Pure.
std::vector<std::string> ParseNativeStack(std::string_view text);

}  // namespace launcher
