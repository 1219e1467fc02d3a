// SPDX-License-Identifier: Apache-2.0
//
// What is said when a job failed: its first failing rank, named in the last line, because logs are
// read from their end.  Pure.

#pragma once

#include <string>
#include <vector>

#include "launcher/protocol/rank_end.h"

namespace launcher {

struct RankFailure : RankEnd {
  double seconds = 0;  // after the start of the job, as ddlrun saw it
  std::vector<std::string> last_lines;
  std::string others;  // of EndCounts
};

// Lines, each ended by '\n' and starting with "ddlrun: ".
std::string FailureReport(const RankFailure& failure);

}  // namespace launcher
