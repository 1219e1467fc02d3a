// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/failure_report.h"

#include <array>
#include <cstdio>
#include <cstring>

namespace launcher {

std::string DescribeEnd(const RankFailure& failure) {
  if (failure.signal == 0) return "exit code " + std::to_string(failure.exit_code);
  return "signal " + std::to_string(failure.signal) + " (" + strsignal(failure.signal) + ")";
}

std::string FailureReport(const RankFailure& failure) {
  std::string text;
  if (!failure.last_lines.empty()) {
    text += "ddlrun: last lines of rank " + std::to_string(failure.rank) + ":\n";
    for (const std::string& line : failure.last_lines) text += "ddlrun:   | " + line + "\n";
  }
  text += "ddlrun: the job failed: rank " + std::to_string(failure.rank);
  if (!failure.host.empty()) text += " on " + failure.host;
  if (failure.pid > 0) text += " (pid " + std::to_string(failure.pid) + ")";
  text += " ended first, with " + DescribeEnd(failure);
  if (failure.seconds >= 0) {
    char after[64];
    std::snprintf(after, sizeof(after), ", %.1f s after the start", failure.seconds);
    text += after;
  }
  return text + "\n";
}

void MpirunMessages::AddLine(std::string_view line) {
  // mpirun's own lines are short; a rank's long line is not worth looking through.
  constexpr std::size_t kLongestMessage = 400;
  if (failure_ || line.size() > kLongestMessage) return;
  const std::string text(line);
  RankFailure failure;
  std::array<char, 256> host = {};
  const std::size_t killed = text.find("process rank ");
  if (killed != std::string::npos &&
      std::sscanf(text.c_str() + killed,
                  "process rank %7d with PID %10ld on node %255s exited on signal %3d",
                  &failure.rank, &failure.pid, host.data(), &failure.signal) == 4 &&
      failure.rank >= 0 && failure.signal > 0) {
    failure.host = host.data();
    failure.exit_code = 128 + failure.signal;
    failure_ = failure;
    return;
  }
  const std::size_t name = text.find("Process name: [");
  const std::size_t comma = text.rfind(',');
  int rank = 0;
  if (name != std::string::npos && comma != std::string::npos && comma > name &&
      std::sscanf(text.c_str() + comma, ",%7d]", &rank) == 1 && rank >= 0) {
    exited_rank_ = rank;
    return;
  }
  if (exited_rank_ && std::sscanf(text.c_str(), " Exit code: %3d", &failure.exit_code) == 1) {
    failure.rank = *exited_rank_;
    failure_ = failure;
  }
}

}  // namespace launcher
