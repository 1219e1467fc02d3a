// SPDX-License-Identifier: Apache-2.0
//
// What the user is told when a job has failed.  The last line names the rank that failed first,
// because people read logs from their end.  Pure.

#pragma once

#include <string>
#include <vector>

#include "launcher/protocol/rank_exit.h"

namespace launcher {

struct RankFailure : RankExit {
  double seconds = 0;  // from the start of the job until ddlrun saw the failure
  std::vector<std::string> last_lines;
  bool may_be_of_cancel = false;  // it was killed in the moment in which Slurm cancelled the step
  std::string others;             // how the other ranks ended: the text of ExitCodeCounts
};

// Lines, each ended by '\n' and starting with "ddlrun: ".
std::string FailureReport(const RankFailure& failure);

}  // namespace launcher
