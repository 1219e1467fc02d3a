// SPDX-License-Identifier: Apache-2.0
//
// What the shim tells ddlrun on standard error, a line each; launcher/protocol/rank_end.h reads
// them.
//
// "ddlrun-rank[KEY]: " is in front of each, where KEY is what ddlrun has made up for this start and
// given to the shims alone: the program may print what it likes, lines of another ddlrun that it
// has started among them, and none is taken for a report.

#pragma once

#include <stddef.h>
#include <time.h>

namespace launcher {

// The last lines that a rank wrote before it failed: so many, and of each no more than that.
inline constexpr int kReportedLines = 10;
inline constexpr size_t kReportedLineBytes = 400;

// Letters and digits.
inline constexpr size_t kReportKeyBytes = 16;

struct Report {
  char text[kReportedLineBytes + 400];
};

// "ddlrun-rank[KEY]: rank 1 on n2 (pid 77) ended with signal 9 (Killed) at
// 2026-11-22T12:13:22.801234Z\n" or "... exit code 3 at ...\n".  `when` is CLOCK_REALTIME: of two
// reports that come at nearly the same time the earlier end is the cause, for the rank that loses
// its peer ends as well.
Report ReportRankEnd(const char* key, int rank, const char* host, long pid, int wait_status,
                     const timespec& when);

// "ddlrun-rank[KEY]: rank 1 has started\n": its program runs.
Report ReportRankStart(const char* key, int rank);

// A line that a rank wrote shortly before it failed: "ddlrun-rank[KEY]: rank 1 | text\n".
Report ReportRankLine(const char* key, int rank, const char* line);

// The step of srun that the ranks are: "ddlrun-rank[KEY]: step 123.4\n"; what scancel needs.
Report ReportStep(const char* key, const char* job, const char* step);

// All of `size` bytes, as far as somebody reads.
void WriteAll(int fd, const char* text, size_t size);

// Waits for 0.05 s, in front of the exit of a rank that has failed.  srun ends the others when it
// hears of that, and with them what Slurm has not passed on yet: without the pause the last lines
// were lost in half of the launches on a busy node.
void LetLastLinesPass();

}  // namespace launcher
