// SPDX-License-Identifier: Apache-2.0
//
// What is said when a job failed: its first failing rank, named in the last line, because logs are
// read from their end.  Pure.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace launcher {

struct RankFailure {
  int rank = -1;
  std::string host;
  long pid = 0;         // 0: not known
  int exit_code = 0;    // 128 + signal if one ended it
  int signal = 0;       // 0: it exited
  double seconds = -1;  // after the start of the job; negative: not known
  std::vector<std::string> last_lines;
};

// Lines, each ended by '\n' and starting with "ddlrun: ".
std::string FailureReport(const RankFailure& failure);

// "signal 11 (Segmentation fault)" or "exit code 3".
std::string DescribeEnd(const RankFailure& failure);

// Finds the first failing rank in what mpirun of Open MPI 4 and 5 says of it on stderr.
class MpirunMessages {
 public:
  void AddLine(std::string_view line);
  const std::optional<RankFailure>& failure() const { return failure_; }

 private:
  std::optional<int> exited_rank_;  // "Process name: [[1,1],RANK]", before "Exit code:"
  std::optional<RankFailure> failure_;
};

}  // namespace launcher
