// SPDX-License-Identifier: Apache-2.0
//
// What the program does when it is called as bede-mpirun.

#pragma once

#include <string>
#include <vector>

namespace launcher {

// `arguments` are those of the program without its own name.  Returns the exit code.  Throws
// LaunchError.
int RunBedeMpirun(const std::vector<std::string>& arguments);

}  // namespace launcher
