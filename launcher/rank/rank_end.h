// SPDX-License-Identifier: Apache-2.0
//
// How a rank ended, and the line in which the shim tells ddlrun.  Pure.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace launcher {

struct RankEnd {
  int rank = -1;
  std::string host;
  long pid = 0;
  int exit_code = 0;  // 128 + signal if one ended it
  int signal = 0;     // 0: it exited
};

// "signal 11 (Segmentation fault)" or "exit code 3".
std::string DescribeEnd(const RankEnd& end);

// "ddlrun-rank: rank 1 on n2 (pid 77) ended with signal 9 (Killed)\n"
std::string FormatRankEnd(const RankEnd& end);

// The inverse for a line without its end; what mpirun --tag-output puts in front is passed over.
// nullopt for any other line.
std::optional<RankEnd> ParseRankEnd(std::string_view line);

}  // namespace launcher
