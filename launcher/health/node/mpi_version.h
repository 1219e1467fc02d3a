// SPDX-License-Identifier: Apache-2.0
//
// Which MPI library a program of this node would find.

#pragma once

#include <string>

namespace launcher {

// "Open MPI v4.1.4"; "" when no MPI library is found.  Loads the library, but does not start MPI.
std::string FindMpiVersion();

}  // namespace launcher
