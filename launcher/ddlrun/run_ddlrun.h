// SPDX-License-Identifier: Apache-2.0
//
// What the program does when it is called as ddlrun.

#pragma once

#include <string>
#include <vector>

namespace launcher {

// Reads the command line, the environment and the site file, plans, starts the ranks and waits for
// them, and starts them again where that is asked for.  `arguments` are those of the program
// without its own name.  Returns the exit code.  Throws LaunchError.
int RunDdlrun(const std::vector<std::string>& arguments);

}  // namespace launcher
