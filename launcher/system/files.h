// SPDX-License-Identifier: Apache-2.0
//
// Files and directories that the user names, and the one in which ddlrun was started.

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

}  // namespace launcher
