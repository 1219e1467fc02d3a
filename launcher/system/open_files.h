// SPDX-License-Identifier: Apache-2.0
//
// How many files this process may have open (RLIMIT_NOFILE).  The limit is one of the process, and
// so is what is kept here.  For single-threaded callers.

#pragma once

#include <cstddef>
#include <string>

namespace launcher {

// Makes room for `more` open files, for `what` ("300 ranks on this machine"): where the soft limit
// is too low it becomes the hard one.  Throws LaunchError(EX_OSERR) where that is too low as well.
void ReserveOpenFiles(std::size_t more, const std::string& what);

// In a child between fork and exec: the soft limit as it was before ReserveOpenFiles.  Programs
// that use select() fail with a descriptor of 1024 or more, and some close all that there may be.
void RestoreOpenFileLimit();

}  // namespace launcher
