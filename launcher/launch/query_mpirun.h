// SPDX-License-Identifier: Apache-2.0
//
// Asks mpirun for its version.  That takes 20 to 50 ms, so it is started early and waited for late.

#pragma once

#include <memory>
#include <string>

#include "launcher/base/environment.h"
#include "launcher/launch/mpirun_version.h"
#include "launcher/system/child_process.h"

namespace launcher {

// Starts `mpirun --version`; `mpirun` is a path.  Null where that is "".  Throws LaunchError as
// CommandOutput does.
std::unique_ptr<CommandOutput> QueryMpirun(const std::string& mpirun,
                                           const Environment& environment);

// Waits for the answer, for 30 s at most.  `requested` is not null.
MpirunVersion AnswerOfMpirun(CommandOutput* requested);

}  // namespace launcher
