// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/failure_report.h"

#include <cstdio>
#include <cstring>
#include <regex>

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
  // mpirun's own lines are short; a rank's long line is not worth a regular expression.
  constexpr std::size_t kLongestMessage = 400;
  if (failure_ || line.size() > kLongestMessage) return;
  static const std::regex killed(
      R"(noticed that process rank (\d{1,6}) with PID (\d{1,10}) on node (\S+) exited on signal (\d{1,3}))");
  static const std::regex name(R"(^\s*Process name: \[.*,(\d{1,6})\]\s*$)");
  static const std::regex code(R"(^\s*Exit code:\s+(\d{1,3})\s*$)");
  std::cmatch match;
  const char* begin = line.data();
  const char* end = line.data() + line.size();
  if (std::regex_search(begin, end, match, killed)) {
    RankFailure failure;
    failure.rank = std::stoi(match[1]);
    failure.pid = std::stol(match[2]);
    failure.host = match[3];
    failure.signal = std::stoi(match[4]);
    failure.exit_code = 128 + failure.signal;
    failure_ = failure;
  } else if (std::regex_search(begin, end, match, name)) {
    exited_rank_ = std::stoi(match[1]);
  } else if (exited_rank_ && std::regex_search(begin, end, match, code)) {
    RankFailure failure;
    failure.rank = *exited_rank_;
    failure.exit_code = std::stoi(match[1]);
    failure_ = failure;
  }
}

}  // namespace launcher
