// SPDX-License-Identifier: Apache-2.0
//
// Where programs are: those of the user by PATH, and those that were installed with ddlrun.

#pragma once

#include <string>

#include "launcher/base/environment.h"

namespace launcher {

// The path of a program by the PATH of `environment`, "" when it is not there; a name with '/' is
// taken as it is.
std::string FindProgram(const std::string& name, const Environment& environment);

// The directory of the running program, symbolic links resolved.  Throws LaunchError(EX_OSERR)
// where /proc does not tell.
std::string ProgramDirectory();

// The path of a program that ddlrun starts and users do not; `program_directory` is that of ddlrun
// itself.  Throws LaunchError(EX_UNAVAILABLE) where it is missing.
std::string RequireHelper(const std::string& name, const std::string& program_directory);

}  // namespace launcher
