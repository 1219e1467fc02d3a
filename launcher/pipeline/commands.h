// SPDX-License-Identifier: Apache-2.0
//
// The last step of the pipeline: the commands that start the ranks of a plan.

#pragma once

#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/cli/options.h"
#include "launcher/cli/settings.h"
#include "launcher/launch/launcher.h"
#include "launcher/pipeline/launch.h"
#include "launcher/pipeline/planned_job.h"

namespace launcher {

// What MASTER_ADDR of the ranks will be: what -x or the site file sets, else what the user has set,
// else 127.0.0.1 on a single node, else the host of rank 0, or its
// address where nothing but Slurm knows that name.  Pure.
std::string MasterAddress(const Settings& settings, const PlannedJob& planned,
                          const Environment& environment);

// The commands to start.  `program_directory` is the directory of ddlrun itself (bin), from which
// the path of the shim follows.  Throws LaunchError.
std::vector<ChildCommand> MakeCommands(const Options& options, const Settings& settings,
                                       const PlannedJob& planned, const Launch& launch,
                                       const Environment& environment,
                                       const std::string& run_directory,
                                       const std::string& program_directory);

// The commands as the user sees them: a line "+ ..." with the first one and, if there are more, a
// line with their number.  kShort: without most of a command that is very long.
enum class CommandLength { kShort, kWhole };
std::string CommandsText(const std::vector<ChildCommand>& commands,
                         CommandLength length = CommandLength::kShort);

}  // namespace launcher
