// SPDX-License-Identifier: Apache-2.0
//
// Allocations that the user writes: -H, -hostfile, or nothing at all.  Pure functions, safe from
// any thread.

#pragma once

#include <string>

#include "launcher/allocation/allocation.h"

namespace launcher {

// The value of -H, such as "host1,host2:4,gpu[01-04]:2".  ":4" is the number of slots, for each
// host that brackets stand for.  As in Open MPI, a host that is written twice has the slots of
// both, where one without a number counts as one.  Throws LaunchError(EX_USAGE) with the column and
// an example.
Allocation AllocationFromHostList(const std::string& text);

// The text of a host file: one host per line, "host", "host slots=4" or "host:4", # comments.
// `file_name` is for messages.  Throws LaunchError(EX_DATAERR) with file, line and column.
Allocation AllocationFromHostfile(const std::string& text, const std::string& file_name);

// One node, named `host_name`; how many ranks it runs is left to the planner.
Allocation AllocationOfThisMachine(const std::string& host_name);

}  // namespace launcher
