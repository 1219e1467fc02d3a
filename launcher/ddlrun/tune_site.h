// SPDX-License-Identifier: Apache-2.0
//
// ddlrun --tune: measures what of the settings is better on the nodes of this job, and writes a
// site file.

#pragma once

#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/cli/options.h"

namespace launcher {

// `arguments` are those of the command line.  Prints what was found, writes the file, and returns
// EX_OK.  Throws LaunchError: EX_USAGE for a command line that asks for something else, too, or a
// file that is there already; EX_CONFIG for fewer than two nodes, and where a node does not answer;
// EX_UNAVAILABLE where ddlbench is missing or nothing can be measured; 128 + n where signal n
// stopped it.
int TuneSite(const std::vector<std::string>& arguments, const Options& options,
             const Environment& environment);

}  // namespace launcher
