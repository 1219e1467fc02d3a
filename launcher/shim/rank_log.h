// SPDX-License-Identifier: Apache-2.0
//
// The log file of a rank (--log-dir), which gets all that the rank writes on standard output and
// standard error.

#pragma once

namespace launcher {

struct RankLog {
  int fd = -1;        // closed on exec
  char problem[800];  // why there is none, for the user; "" where there is one
};

// Opens DIRECTORY/rank-00003.log.  A rank that is started again appends to its file.  A symbolic
// link of that name is refused: in a directory to which other users may write, it could lead to any
// file of this user.  So is a FIFO, which would hang the rank.
RankLog OpenRankLog(const char* directory, int rank);

}  // namespace launcher
