// SPDX-License-Identifier: Apache-2.0
//
// The log file of a rank (--log-dir): all that it writes, on both streams, beside what is shown.

#pragma once

namespace launcher {

struct RankLog {
  int fd = -1;        // closed on exec
  char problem[800];  // why there is none, for the user; "" where there is one
};

// Opens DIRECTORY/rank-00003.log for appending, since a restarted rank goes on in it.  A symbolic
// link of that name is refused: where others may write to the directory, one of theirs would have
// the rank write into any file of its user.
RankLog OpenRankLog(const char* directory, int rank);

}  // namespace launcher
