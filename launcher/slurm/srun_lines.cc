// SPDX-License-Identifier: Apache-2.0

#include "launcher/slurm/srun_lines.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "launcher/base/error.h"

namespace launcher {
namespace {

constexpr std::string_view kSrunError = "srun: error: ";
// No line about one node is longer, even with the longest host name.
constexpr std::size_t kLongest = 500;
// The same for a line about many tasks on many nodes.
constexpr std::size_t kLongestOfTasks = 65536;
// No job has more (rankfile::kMaxRanks).
constexpr int kMaxRanks = 1 << 20;

// Takes from `line` all up to the end of the first `piece`.  False, and nothing taken, where it has
// none.
bool TakeThrough(std::string_view piece, std::string_view* line) {
  const std::size_t at = line->find(piece);
  if (at == std::string_view::npos) return false;
  line->remove_prefix(at + piece.size());
  return true;
}

}  // namespace

std::vector<RankRange> ParseSrunTasks(std::string_view line) {
  if (!line.starts_with(kSrunError) || line.size() > kLongestOfTasks) return {};
  line.remove_prefix(kSrunError.size());
  const std::size_t host_end = line.find(": task");
  if (host_end == std::string_view::npos || host_end == 0 || line.find_first_of(": ") != host_end) {
    return {};
  }
  line.remove_prefix(host_end + std::string_view(": task").size());
  if (line.starts_with('s')) line.remove_prefix(1);
  const std::size_t list_end = line.find(": ");
  if (!line.starts_with(' ') || list_end == std::string_view::npos) return {};
  std::vector<RankRange> tasks;
  int min = 0;  // the next task cannot have a smaller number
  for (const char* next = line.data() + 1; next < line.data() + list_end; ++next) {
    const char* const end = line.data() + list_end;
    RankRange range;
    auto read = std::from_chars(next, end, range.first);
    range.last = range.first;
    if (read.ec == std::errc() && read.ptr < end && *read.ptr == '-') {
      read = std::from_chars(read.ptr + 1, end, range.last);
    }
    next = read.ptr;
    if (read.ec != std::errc() || (next < end && *next != ',') || range.first < min ||
        range.last < range.first || range.last >= kMaxRanks) {
      return {};
    }
    tasks.push_back(range);
    min = range.last + 1;
  }
  return tasks;
}

std::optional<RankExit> ParseSrunError(std::string_view line) {
  const std::vector<RankRange> tasks = ParseSrunTasks(line);
  if (tasks.empty()) return std::nullopt;
  RankExit end;
  end.rank = tasks.front().first;
  line.remove_prefix(kSrunError.size());
  end.host = line.substr(0, line.find(": "));
  line.remove_prefix(line.find(": ") + 2);
  const std::string how(line.substr(line.find(": ") + 2));
  if (std::sscanf(how.c_str(), "Exited with exit code %3d", &end.exit_code) == 1) {
    return IsFailure(end.exit_code) ? std::optional(end) : std::nullopt;
  }
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    if (!how.starts_with(strsignal(signal))) continue;
    end.signal = signal;
    end.exit_code = 128 + signal;
    return end;
  }
  return std::nullopt;
}

std::optional<std::string> ParseLostNode(std::string_view line) {
  constexpr std::string_view kFailure = "srun: error: Node failure on ";
  constexpr std::string_view kLaunch = "srun: error: Task launch for ";
  constexpr std::string_view kFailedOn = " failed on node ";
  constexpr std::string_view kNoAnswer = ": Communication connection failure";
  std::string_view host;
  if (line.starts_with(kFailure)) {
    host = line.substr(kFailure.size());
  } else if (line.starts_with(kLaunch)) {
    line.remove_prefix(kLaunch.size());
    if (!TakeThrough(kFailedOn, &line) || !line.ends_with(kNoAnswer)) return std::nullopt;
    line.remove_suffix(kNoAnswer.size());
    host = line;
  }
  if (host.empty() || host.size() > kLongest ||
      host.find_first_of(" :,[]") != std::string_view::npos) {
    return std::nullopt;
  }
  return std::string(host);
}

std::optional<std::string> ParseCancelled(std::string_view line) {
  constexpr std::string_view kAborted = "srun: Job step aborted: ";
  constexpr std::string_view kBegin = ": error: *** STEP ";
  constexpr std::string_view kCancelled = " CANCELLED AT ";
  constexpr std::string_view kEnd = " ***";
  if (line.starts_with(kAborted)) return "";
  // Each piece is looked for behind the one before it: both have blanks at their ends, and may not
  // share one.
  if (line.size() > kLongest || !TakeThrough(kBegin, &line) || !TakeThrough(kCancelled, &line) ||
      !line.ends_with(kEnd)) {
    return std::nullopt;
  }
  line.remove_suffix(kEnd.size());
  return std::string(line.substr(std::min(line.find(' '), line.size())));
}

bool IsRemarkOnBinding(std::string_view line) {
  return line == "srun: cluster configuration lacks support for cpu binding";
}

bool IsStepLeft(std::string_view line) {
  return line == "srun: error: Timed out waiting for job step to complete";
}

std::optional<StepCreation> ParseStepCreation(std::string_view line) {
  if (!line.starts_with("srun: ")) return std::nullopt;
  if (line.find(" step creation temporarily disabled") != std::string_view::npos) {
    return StepCreation::kWaiting;
  }
  if (line.starts_with("srun: Step created for")) return StepCreation::kGranted;
  return std::nullopt;
}

}  // namespace launcher
