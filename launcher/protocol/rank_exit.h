// SPDX-License-Identifier: Apache-2.0
//
// How ddlrun reads the lines that the shim of a rank writes on standard error (rank_event.h).
// ddlrun shows the user the line about the end, without the key, and keeps the others to itself.
// Pure.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace launcher {

struct RankExit {
  int rank = -1;
  std::string host;
  long pid = 0;
  int exit_code = 0;  // 128 + signal if one ended it
  int signal = 0;     // 0: it exited
  double time = 0;    // seconds since 1970 by the clock of its node; 0: not known
};

// "ddlrun-rank[KEY]: "; "" for no key, which no shim has.
std::string EventHead(const std::string& key);

// A line that has a report in it.
struct LineWithEvent {
  std::string_view before;  // a label of srun or mpirun (IsLabel), or text of the user's program
  std::string_view report;  // what follows the head: "rank 1 has started"
};
// Looks for `head`, which is that of EventHead.  nullopt for a line without it.
std::optional<LineWithEvent> FindEvent(std::string_view line, std::string_view head);

// `line` without the marks of EmitOutputMark, of which there are several where unfinished lines
// have run into each other; nullopt for a line that has none.
std::optional<std::string> WithoutOutputMarks(std::string_view line, std::string_view head);

// Whether `text` is what srun --label or mpirun --tag-output puts in front of a line, or nothing.
bool IsLabel(std::string_view text);

// The report as the user sees it: "ddlrun-rank: rank 1 ...".
std::string ShownReport(std::string_view report);

// "signal 11 (Segmentation fault)" or "exit code 3".
std::string DescribeEnd(const RankExit& end);

// The inverse of EmitRankExit for a report without head and line end.  nullopt for any other.
std::optional<RankExit> ParseRankExit(std::string_view report);

// Ranks from `first` to `last`.
struct RankRange {
  int first = 0;
  int last = 0;
};

// The inverse of EmitRankStart: the rank.
std::optional<int> ParseRankStart(std::string_view report);

// The inverse of EmitRankSuccess: the rank.
std::optional<int> ParseRankSuccess(std::string_view report);

// The inverse of EmitRankGone.
struct RankGone {
  int rank = -1;
  int exit_code = 0;  // 128 + signal if one ended it
};
std::optional<RankGone> ParseRankGone(std::string_view report);

// The inverse of EmitEnergy.
struct RankEnergy {
  int rank = -1;
  double joules = 0;
};
std::optional<RankEnergy> ParseEnergy(std::string_view report);

// The inverse of EmitKilledAlone: the rank.
std::optional<int> ParseKilledAlone(std::string_view report);

// The inverse of EmitAttachment.
struct RankAttachment {
  int rank = -1;
  bool is_attached = false;
};
std::optional<RankAttachment> ParseAttachment(std::string_view report);

// Whether it is the report of a rank that is stopped (EmitRankStopped).
bool IsRankStopped(std::string_view report);

// Whether it is the report of a process that cannot be ended (EmitLeftProcess).
bool IsProcessLeft(std::string_view report);

// A line that a rank wrote shortly before it failed.
struct RankLine {
  int rank = -1;
  std::string text;
};
// The inverse of EmitRankLine.
std::optional<RankLine> ParseRankLine(std::string_view report);

// The inverse of EmitFrameHead for a report without line end: a part of what a rank has written.
struct OutputFrame {
  int rank = -1;
  std::string_view text;
  std::string_view end;  // "\n", "\r", or "" of a beginning
};
std::optional<OutputFrame> ParseOutputFrame(std::string_view report);

// The inverse of EmitStep: "123.4".
std::optional<std::string> ParseStep(std::string_view report);

}  // namespace launcher
