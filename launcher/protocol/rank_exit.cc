// SPDX-License-Identifier: Apache-2.0

#include "launcher/protocol/rank_exit.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "launcher/base/error.h"
#include "launcher/protocol/rank_event.h"
#include "support/number.h"

namespace launcher {
namespace {

constexpr std::string_view kRank = "rank ";
constexpr std::string_view kStep = "step ";
constexpr char kOutput[] = "output: ";
constexpr char kBar[] = " | ";
// No line about the end of a rank is longer, even with the longest host name.
constexpr std::size_t kLongest = 500;

// The time of "... at 2026-11-22T12:13:22.801234Z"; 0 if that is not there.
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

// Takes "rank N" from the beginning of `report` and returns N.
std::optional<int> TakeRank(std::string_view* report) {
  if (!report->starts_with(kRank)) return std::nullopt;
  report->remove_prefix(kRank.size());
  const std::size_t digits = std::min(report->find_first_not_of("0123456789"), report->size());
  if (digits == 0 || digits > 7) return std::nullopt;
  const std::optional<int> rank = support::WholeNumber<int>(report->substr(0, digits));
  report->remove_prefix(digits);
  return rank;
}

}  // namespace

std::string EventHead(const std::string& key) {
  return key.empty() ? "" : "ddlrun-rank[" + key + "]: ";
}

std::optional<LineWithEvent> FindEvent(std::string_view line, std::string_view head) {
  const std::size_t start = head.empty() ? std::string_view::npos : line.find(head);
  if (start == std::string_view::npos) return std::nullopt;
  return LineWithEvent{line.substr(0, start), line.substr(start + head.size())};
}

std::optional<std::string> WithoutOutputMarks(std::string_view line, std::string_view head) {
  const std::string mark = std::string(head) + kOutput;
  if (head.empty() || line.find(mark) == std::string_view::npos) return std::nullopt;
  std::string text(line);
  for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos;) {
    text.erase(at, mark.size());
  }
  return text;
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
  // "[3] " of MPICH and Intel MPI.
  if (text.front() == '[' && text.ends_with("] ")) {
    return text.size() > 3 && text.find_first_not_of("0123456789", 1) == text.size() - 2;
  }
  // " 3: " of srun.
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::size_t digits = text.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string_view::npos && text.substr(digits) == ": ";
}

std::string ShownReport(std::string_view report) { return "ddlrun-rank: " + std::string(report); }

std::string DescribeEnd(const RankExit& end) {
  if (end.signal == 0) return "exit code " + std::to_string(end.exit_code);
  return "signal " + std::to_string(end.signal) + " (" + strsignal(end.signal) + ")";
}

std::optional<RankExit> ParseRankExit(std::string_view report) {
  if (!report.starts_with(kRank) || report.size() > kLongest) return std::nullopt;
  const std::string text(report.substr(kRank.size()));
  RankExit end;
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

std::optional<int> ParseRankStart(std::string_view report) {
  const std::optional<int> rank = TakeRank(&report);
  return report == " has started" ? rank : std::nullopt;
}

std::optional<int> ParseRankSuccess(std::string_view report) {
  const std::optional<int> rank = TakeRank(&report);
  return report == " has ended" ? rank : std::nullopt;
}

std::optional<RankGone> ParseRankGone(std::string_view report) {
  constexpr std::string_view kIsGone = " is gone, ";
  const std::optional<int> rank = TakeRank(&report);
  if (!rank || !report.starts_with(kIsGone)) return std::nullopt;
  const std::optional<int> code = support::WholeNumber<int>(report.substr(kIsGone.size()));
  if (!code || !IsFailure(*code)) return std::nullopt;
  return RankGone{*rank, *code};
}

std::optional<RankEnergy> ParseEnergy(std::string_view report) {
  constexpr std::string_view kMeasured = " has measured ";
  constexpr std::string_view kUnit = " mJ";
  const std::optional<int> rank = TakeRank(&report);
  if (!rank || !report.starts_with(kMeasured) || !report.ends_with(kUnit)) return std::nullopt;
  report.remove_prefix(kMeasured.size());
  report.remove_suffix(std::min(report.size(), kUnit.size()));
  const std::optional<long long> millijoules = support::WholeNumber<long long>(report);
  if (!millijoules || *millijoules <= 0) return std::nullopt;
  return RankEnergy{*rank, static_cast<double>(*millijoules) / 1000};
}

std::optional<int> ParseKilledAlone(std::string_view report) {
  const std::optional<int> rank = TakeRank(&report);
  return report == " was killed alone" ? rank : std::nullopt;
}

std::optional<RankAttachment> ParseAttachment(std::string_view report) {
  const std::optional<int> rank = TakeRank(&report);
  const bool is_attached = report == " is attached";
  if (!rank || (!is_attached && report != " is detached")) return std::nullopt;
  return RankAttachment{*rank, is_attached};
}

bool IsRankStopped(std::string_view report) {
  const std::size_t pid = report.find(" (pid ");
  return TakeRank(&report) && report.starts_with(" on ") && pid != std::string_view::npos &&
         report.find(") is stopped: ") != std::string_view::npos;
}

bool IsProcessLeft(std::string_view report) {
  return TakeRank(&report) && report.starts_with(" on ") &&
         report.find(" has left process ") != std::string_view::npos;
}

std::optional<RankLine> ParseRankLine(std::string_view report) {
  const std::optional<int> rank = TakeRank(&report);
  if (!rank || !report.starts_with(kBar)) return std::nullopt;
  return RankLine{*rank, std::string(report.substr(std::string_view(kBar).size()))};
}

std::optional<OutputFrame> ParseOutputFrame(std::string_view report) {
  constexpr std::string_view kOut = "out:";
  if (!report.starts_with(kOut)) return std::nullopt;
  report.remove_prefix(kOut.size());
  const std::size_t colon = report.find(':');
  if (colon == std::string_view::npos || colon > 7 || report.size() < colon + 3) {
    return std::nullopt;
  }
  const std::optional<int> rank = support::WholeNumber<int>(report.substr(0, colon));
  const char end = report[colon + 1];
  if (!rank || *rank < 0 || report[colon + 2] != ':') return std::nullopt;
  if (end != kFrameOfLine && end != kFrameOfReturn && end != kFrameOfBeginning) return std::nullopt;
  return OutputFrame{*rank, report.substr(colon + 3),
                     end == kFrameOfLine     ? "\n"
                     : end == kFrameOfReturn ? "\r"
                                             : ""};
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
