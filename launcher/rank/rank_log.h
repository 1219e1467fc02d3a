// SPDX-License-Identifier: Apache-2.0
//
// The log file of a rank (--log-dir): all that it writes, on both streams, beside what is shown.

#pragma once

#include <string>

namespace launcher {

// Opens DIRECTORY/rank-00003.log for appending, since a restarted rank goes on in it, and returns
// its descriptor, closed on exec.  Throws LaunchError(EX_OSERR) that names the file.
int OpenRankLog(const std::string& directory, int rank);

}  // namespace launcher
