// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/rank_end.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace launcher {
namespace {

constexpr std::string_view kRank = "rank ";
constexpr std::string_view kStep = "step ";
constexpr char kBar[] = " | ";
constexpr std::string_view kSrunError = "srun: error: ";
// Of a line with the longest host name.
constexpr std::size_t kLongest = 500;
// Of srun's about many tasks on many nodes.
constexpr std::size_t kLongestOfSrun = 65536;
// No job has more (rankfile::kMaxRanks).
constexpr int kMostRanks = 1 << 20;

// Of "... at 2026-11-22T12:13:22.801234Z"; 0 if that is not there.
double TimeAtEnd(const std::string& text) {
  const std::size_t at = text.rfind(" at ");
  if (at == std::string::npos) return 0;
  tm utc = {};
  double second = 0;
  if (std::sscanf(text.c_str() + at, " at %4d-%2d-%2dT%2d:%2d:%9lfZ", &utc.tm_year, &utc.tm_mon,
                  &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &second) != 6) {
    return 0;
  }
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  return static_cast<double>(timegm(&utc)) + second;
}

// The rank of a report, which becomes what follows it.
std::optional<int> TakeRank(std::string_view* report) {
  if (!report->starts_with(kRank)) return std::nullopt;
  report->remove_prefix(kRank.size());
  const std::size_t digits = std::min(report->find_first_not_of("0123456789"), report->size());
  if (digits == 0 || digits > 7) return std::nullopt;
  const int rank = std::stoi(std::string(report->substr(0, digits)));
  report->remove_prefix(digits);
  return rank;
}

// 128 + signal included.
bool IsFailure(int exit_code) { return exit_code > 0 && exit_code <= 255; }

}  // namespace

std::string ReportHead(const std::string& key) {
  return key.empty() ? "" : "ddlrun-rank[" + key + "]: ";
}

std::optional<LineWithReport> FindReport(std::string_view line, std::string_view head) {
  const std::size_t start = head.empty() ? std::string_view::npos : line.find(head);
  if (start == std::string_view::npos) return std::nullopt;
  return LineWithReport{line.substr(0, start), line.substr(start + head.size())};
}

bool IsLabel(std::string_view text) {
  if (text.empty()) return true;
  // "[1,12]<stderr>:" of Open MPI 4, "[prterun-n1-77@1,12]<stderr>: " of 5; the time with
  // --timestamp-output.
  constexpr std::string_view kStream = "<stderr>:";
  const std::size_t stream = text.find(kStream);
  if (stream != std::string_view::npos) {
    const std::string_view rest = text.substr(stream + kStream.size());
    return rest.empty() || rest == " ";
  }
  // " 3: " of srun.
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::size_t digits = text.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string_view::npos && text.substr(digits) == ": ";
}

std::string ShownReport(std::string_view report) { return "ddlrun-rank: " + std::string(report); }

std::string DescribeEnd(const RankEnd& end) {
  if (end.signal == 0) return "exit code " + std::to_string(end.exit_code);
  return "signal " + std::to_string(end.signal) + " (" + strsignal(end.signal) + ")";
}

std::optional<RankEnd> ParseRankEnd(std::string_view report) {
  if (!report.starts_with(kRank) || report.size() > kLongest) return std::nullopt;
  const std::string text(report.substr(kRank.size()));
  RankEnd end;
  std::array<char, 256> host = {};
  int length = 0;
  if (std::sscanf(text.c_str(), "%7d on %255s (pid %10ld) ended with %n", &end.rank, host.data(),
                  &end.pid, &length) != 3 ||
      length == 0 || end.rank < 0) {
    return std::nullopt;
  }
  end.host = host.data();
  const char* rest = text.c_str() + length;
  end.time = TimeAtEnd(text);
  if (std::sscanf(rest, "signal %3d", &end.signal) == 1 && end.signal > 0 &&
      IsFailure(128 + end.signal)) {
    end.exit_code = 128 + end.signal;
    return end;
  }
  if (std::sscanf(rest, "exit code %3d", &end.exit_code) == 1 && IsFailure(end.exit_code)) {
    return end;
  }
  return std::nullopt;
}

std::vector<RankRange> ParseSrunTasks(std::string_view line) {
  if (!line.starts_with(kSrunError) || line.size() > kLongestOfSrun) return {};
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
  int least = 0;  // they ascend
  for (const char* next = line.data() + 1; next < line.data() + list_end; ++next) {
    const char* const end = line.data() + list_end;
    RankRange range;
    auto read = std::from_chars(next, end, range.first);
    range.last = range.first;
    if (read.ec == std::errc() && read.ptr < end && *read.ptr == '-') {
      read = std::from_chars(read.ptr + 1, end, range.last);
    }
    next = read.ptr;
    if (read.ec != std::errc() || (next < end && *next != ',') || range.first < least ||
        range.last < range.first || range.last >= kMostRanks) {
      return {};
    }
    tasks.push_back(range);
    least = range.last + 1;
  }
  return tasks;
}

std::optional<RankEnd> ParseSrunError(std::string_view line) {
  const std::vector<RankRange> tasks = ParseSrunTasks(line);
  if (tasks.empty()) return std::nullopt;
  RankEnd end;
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
  } else if (line.starts_with(kLaunch) && line.ends_with(kNoAnswer)) {
    const std::size_t start = line.find(kFailedOn);
    if (start == std::string_view::npos) return std::nullopt;
    host = line.substr(start + kFailedOn.size());
    host.remove_suffix(kNoAnswer.size());
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
  const std::size_t at = line.find(kCancelled);
  if (line.find(kBegin) >= at || at == std::string_view::npos || !line.ends_with(kEnd) ||
      line.size() > kLongest) {
    return std::nullopt;
  }
  line.remove_suffix(kEnd.size());
  line.remove_prefix(at + kCancelled.size());
  return std::string(line.substr(std::min(line.find(' '), line.size())));
}

std::optional<int> ParseRankStart(std::string_view report) {
  const std::optional<int> rank = TakeRank(&report);
  return report == " has started" ? rank : std::nullopt;
}

std::optional<RankLine> ParseRankLine(std::string_view report) {
  const std::optional<int> rank = TakeRank(&report);
  if (!rank || !report.starts_with(kBar)) return std::nullopt;
  return RankLine{*rank, std::string(report.substr(std::string_view(kBar).size()))};
}

std::optional<std::string> ParseStep(std::string_view report) {
  if (!report.starts_with(kStep)) return std::nullopt;
  report.remove_prefix(kStep.size());
  const std::size_t dot = report.find('.');
  const bool is_step = report.find_first_not_of("0123456789.+") == std::string_view::npos &&
                       dot != std::string_view::npos && dot > 0 && dot + 1 < report.size() &&
                       report.size() < 40;
  if (!is_step) return std::nullopt;
  return std::string(report);
}

}  // namespace launcher
