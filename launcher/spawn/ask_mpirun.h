// SPDX-License-Identifier: Apache-2.0
//
// `mpirun --version`, started early and waited for late: it takes 20 to 50 ms.

#pragma once

#include <memory>
#include <string>

#include "launcher/base/environment.h"
#include "launcher/spawn/mpirun_version.h"
#include "launcher/system/command_output.h"

namespace launcher {

// Starts it.  Null where `mpirun`, a path, is "".  Throws LaunchError as CommandOutput does.
std::unique_ptr<CommandOutput> AskMpirun(const std::string& mpirun, const Environment& environment);

// Waits for its answer, for 30 s at most.  `asked` is not null.
MpirunVersion AnswerOfMpirun(CommandOutput* asked);

}  // namespace launcher
