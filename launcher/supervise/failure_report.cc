// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/failure_report.h"

#include <array>
#include <cstdio>

#include "launcher/base/messages.h"

namespace launcher {

std::string FailureReport(const RankFailure& failure) {
  std::string text;
  const std::string rank = "rank " + std::to_string(failure.rank);
  if (!failure.last_lines.empty()) {
    text += "ddlrun: last lines of " + rank + ":\n";
    for (const std::string& line : failure.last_lines) text += "ddlrun:   | " + line + "\n";
  }
  if (!failure.others.empty()) text += "ddlrun: " + failure.others + "\n";
  std::array<char, 64> after = {};
  std::snprintf(after.data(), after.size(), ", %.1f s after the start", failure.seconds);
  const std::string pid = failure.pid > 0 ? " (pid " + std::to_string(failure.pid) + ")" : "";
  const char* const doubt =
      failure.may_be_of_cancel
          ? ", as Slurm cancelled the step: whoever did that may have ended the rank as well"
          : "";
  return text + "ddlrun: " +
         Coded(Message::kJobFailed, "the job failed: " + rank + " on " + failure.host + pid +
                                        " ended first, with " + DescribeEnd(failure) +
                                        after.data() + doubt) +
         "\n";
}

}  // namespace launcher
