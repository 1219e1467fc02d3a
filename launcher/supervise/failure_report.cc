// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/failure_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "launcher/base/messages.h"
#include "support/memory_kills.h"
#include "support/number.h"
#include "support/quoting.h"

namespace launcher {

bool ExitCodeCounts::Add(const RankExit& end, const std::vector<RankRange>& ranks) {
  int& count = ways_[DescribeEnd(end)];
  for (const RankRange& range : ranks) {
    const auto size = static_cast<std::size_t>(range.last) + 1;
    if (is_counted_.size() < size) is_counted_.resize(std::max(size, 2 * is_counted_.size()));
    for (int rank = range.first; rank <= range.last; ++rank) {
      if (is_counted_[static_cast<std::size_t>(rank)]) continue;
      is_counted_[static_cast<std::size_t>(rank)] = true;
      ++count;
      ++ranks_;
    }
  }
  return ++lines_ <= kShownLines;
}

std::string ExitCodeCounts::Text() const {
  if (lines_ <= kShownLines) return "";
  std::vector<std::pair<int, std::string>> ways;  // the most frequent one first
  for (const auto& [how, count] : ways_) {
    if (count > 0) ways.emplace_back(-count, how);
  }
  std::sort(ways.begin(), ways.end());
  std::string text = support::Counted(ranks_, "rank") + " ended: ";
  int left = ranks_;
  for (std::size_t i = 0; i < std::min(ways.size(), kReportedCounts); ++i) {
    const int count = -ways[i].first;
    left -= count;
    text += (i == 0 ? "" : ", ") + std::to_string(count) + " with " + ways[i].second;
  }
  if (left > 0) text += ", " + std::to_string(left) + " otherwise";
  return text + "; " + std::to_string(kShownLines) + " lines about them are above, " +
         std::to_string(lines_ - kShownLines) + " were left out";
}

std::string ErrorLineOf(const Tail& lines) {
  constexpr std::size_t kMaxBytes = 200;
  constexpr const char* kWords[] = {
      "error",        "exception",        "fatal", "out of memory", "not found",
      "no such file", "permission denied"};
  const auto& all = lines.lines();
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](std::string line) {
    for (char& letter : line) {
      if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    }
    return line.find("warning") == std::string::npos &&
           std::ranges::any_of(
               kWords, [&line](const char* word) { return line.find(word) != std::string::npos; });
  });
  if (found == all.rend()) return "";
  const std::string line = support::WithoutControls(*found);
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  return line.size() - first > kMaxBytes ? line.substr(first, kMaxBytes) + "..."
                                         : line.substr(first);
}

std::string FailureReport(const RankFailure& failure) {
  std::string text;
  const std::string rank = "rank " + std::to_string(failure.rank);
  std::vector<std::string> lines = failure.last_lines;
  std::string memory;
  if (!lines.empty() && lines.back().starts_with(support::kMemoryKill)) {
    memory = "; " + lines.back();
    lines.pop_back();
  }
  if (!lines.empty()) {
    text += "ddlrun: last lines of " + rank + ":\n";
    for (const std::string& line : lines) text += "ddlrun:   | " + line + "\n";
  }
  if (!failure.others.empty()) text += "ddlrun: " + failure.others + "\n";
  const std::string error =
      memory.empty() && !failure.error_line.empty() ? "; its error: " + failure.error_line : "";
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
                                        after.data() + doubt + memory + error) +
         "\n";
}

}  // namespace launcher
