// SPDX-License-Identifier: Apache-2.0
//
// Files and directories that the user names, and the one in which ddlrun was started.  Programs: of
// the user by PATH, and those that were installed with ddlrun.

#pragma once

#include <string>

#include "launcher/base/environment.h"

namespace launcher {

// The whole text of a file that lists hosts.  Throws LaunchError(EX_DATAERR) when it cannot be read
// or is over 16 MiB.
std::string ReadFile(const std::string& path);

// Makes the directory and those above it, unless it is there.  Throws LaunchError(EX_OSERR).
void MakeDirectory(const std::string& path);

// The current directory by the name that the user's shell has for it (PWD), which may lead over
// symbolic links that other nodes have too; else by the system's.  Throws LaunchError(EX_OSERR)
// where it was removed.
std::string CurrentDirectory(const Environment& environment);

// `path`, or where it is relative, what it is from the current directory.  Throws
// LaunchError(EX_OSERR) where that was removed.
std::string AbsolutePath(const std::string& path);

// The path of a program by the PATH of `environment`, "" when it is not there; a name with '/' is
// taken as it is.
std::string FindProgram(const std::string& name, const Environment& environment);

// As FindProgram, and where PATH has none of this name, beside the running program: mpirun and
// ddltraind of a virtual environment that ddlrun is in, which may not be active.
std::string FindProgramOrNeighbor(const std::string& name, const Environment& environment);

// The directory of the running program, symbolic links resolved.  Throws LaunchError(EX_OSERR)
// where /proc does not tell.
std::string ProgramDirectory();

// The path of a program that ddlrun starts and users do not; `program_directory` is that of ddlrun
// itself.  Throws LaunchError(EX_UNAVAILABLE) where it is missing.
std::string RequireHelper(const std::string& name, const std::string& program_directory);

}  // namespace launcher
