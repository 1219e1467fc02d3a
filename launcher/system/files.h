// SPDX-License-Identifier: Apache-2.0
//
// Files and directories that the user names.

#pragma once

#include <string>

namespace launcher {

// The whole text of a file that lists hosts.  Throws LaunchError(EX_DATAERR) when it cannot be read
// or is over 16 MiB.
std::string ReadFile(const std::string& path);

// Makes the directory and those above it, unless it is there.  Throws LaunchError(EX_OSERR).
void MakeDirectory(const std::string& path);

}  // namespace launcher
