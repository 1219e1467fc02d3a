// SPDX-License-Identifier: Apache-2.0
//
// The commands of ddlbench that measure one part of a training, or of its start.  Pure.

#pragma once

#include "bench/ddlbench/options.h"

namespace bench {

// Describes loader, allreduce, step and startup; as DescribeOptions.
void AddPartCommands(CLI::App& app, BenchOptions& options);

}  // namespace bench
