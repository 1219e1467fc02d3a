// SPDX-License-Identifier: Apache-2.0
//
// The reports of the shim to ddlrun, each of them a line on standard error.  rank_exit.h reads
// them.
//
// Each begins with "ddlrun-rank[KEY]: ".  ddlrun makes a new KEY for every start and tells it to
// the shims only, so that nothing that a program prints is taken for a report, not even the lines
// of another ddlrun that the program has started.

#pragma once

#include <stddef.h>
#include <time.h>

namespace launcher {

// How many of the last lines that a rank wrote before it failed are reported, and how much of each.
inline constexpr int kReportedLines = 10;
inline constexpr size_t kReportedLineBytes = 400;

// The length of a key, which has letters and digits only.
inline constexpr size_t kEventKeyBytes = 16;

struct RankEvent {
  char text[kReportedLineBytes + 400];
};

// "ddlrun-rank[KEY]: rank 1 on n2 (pid 77) ended with signal 9 (Killed) at
// 2026-11-22T12:13:22.801234Z\n" or "... exit code 3 at ...\n".  `when` is the time of
// CLOCK_REALTIME: a rank ends soon after its peer has failed, and its report may come first, so
// that ddlrun must know which of them ended first.
RankEvent EmitRankExit(const char* key, int rank, const char* host, long pid, int wait_status,
                       const timespec& when);

// "ddlrun-rank[KEY]: rank 1 has started\n", when its program runs.
RankEvent EmitRankStart(const char* key, int rank);

// "ddlrun-rank[KEY]: rank 1 has ended\n", when its program has ended with exit code 0, and so have
// all processes that it has left.
RankEvent EmitRankSuccess(const char* key, int rank);

// "ddlrun-rank[KEY]: rank 1 is gone, 137\n", when its program has ended with another exit code
// (128 + n by signal n), and so have all processes that it has left.  It is reported of a rank that
// has failed, that was told to stop, or whose peer has failed.
RankEvent EmitRankGone(const char* key, int rank, int exit_code);

// "ddlrun-rank[KEY]: rank 0 has measured 5400000 mJ\n", of the first rank of a node, when its
// program has ended: the energy of the GPUs of the job there, since the start.
RankEvent EmitEnergy(const char* key, int rank, long long millijoules);

// "ddlrun-rank[KEY]: rank 1 on n2 has left process 77 (python), ...\n": it cannot be ended.
RankEvent EmitLeftProcess(const char* key, int rank, const char* host, long pid, const char* name);

// "ddlrun-rank[KEY]: rank 1 was killed alone\n": of a rank that SIGKILL has ended, once its shim
// has outlived LetLastLinesPass.  Who kills a whole step kills the shim with it.
RankEvent EmitKilledAlone(const char* key, int rank);

// "ddlrun-rank[KEY]: rank 1 on n2 (pid 77) is stopped: ...\n", of a rank, or of a process of it,
// that has been stopped for long.
RankEvent EmitRankStopped(const char* key, int rank, const char* host, long pid);

// "ddlrun-rank[KEY]: rank 1 is attached\n" or "... is detached\n": somebody is attached to it
// (attachment.h), or nobody any more.
RankEvent EmitAttachment(const char* key, int rank, bool is_attached);

// A line that a rank wrote shortly before it failed: "ddlrun-rank[KEY]: rank 1 | text\n".
RankEvent EmitRankLine(const char* key, int rank, const char* line);

// "ddlrun-rank[KEY]: step 123.4\n": the step of srun that the ranks are in, by which scancel knows
// it.
RankEvent EmitStep(const char* key, const char* job, const char* step);

// "ddlrun-rank[KEY]: output: ", which has no line end.  The shim puts it in front of each line of
// its program that ddlrun could take for one of srun, slurmstepd, mpirun or a shim, all of which
// ddlrun reads though there is no key in them: a program may print what its own srun has said.
RankEvent EmitOutputMark(const char* key);

// How a frame of output ends.  Each is a line "ddlrun-rank[KEY]: out:12:n:text\n" with a part of
// what a rank writes to the stream that it comes on, where ddlrun must know whose it is
// (--tag-output,
// --fold-output).  Launchers pass on lines of kFrameBytes whole: longer ones come in several
// frames.
enum FrameEnd : char {
  kFrameOfLine = 'n',      // a line end follows the text
  kFrameOfReturn = 'r',    // '\r' does, as of a progress bar
  kFrameOfBeginning = 'p'  // more of the line follows
};
inline constexpr size_t kFrameBytes = 1000;  // slurmstepd sends 1024

// What comes in front of the text: "ddlrun-rank[KEY]: out:12:n:".
RankEvent EmitFrameHead(const char* key, int rank, FrameEnd end);

// Whether a line that begins with these `size` bytes, of which more may follow, can be such a line.
bool MayBeLineOfLauncher(const char* text, size_t size);

// Writes all `size` bytes; it stops where nobody can read them any more.
void WriteAll(int fd, const char* text, size_t size);

// Waits for 0.05 s before a shim exits whose rank has failed.  When srun learns of the failure it
// ends the step, and what Slurm has not passed on by then is lost: without the pause these were the
// last lines of the rank in half of the launches on a busy node.
void LetLastLinesPass();

}  // namespace launcher
