// SPDX-License-Identifier: Apache-2.0
//
// Passes on what the program of the shim writes: standard error, so that its last lines can be
// reported when the rank fails and no line of it is taken for one of srun or mpirun.  Standard
// output as well where the rank has a log file, its launcher would mix pieces of lines, or ddlrun
// must know whose each line is.

#pragma once

#include <poll.h>
#include <stddef.h>
#include <sys/types.h>

#include "launcher/protocol/rank_event.h"

namespace launcher {

// Keeps the last lines of a text that comes in pieces; empty lines are left out.  It has a fixed
// size and no C++ library.  (ddlrun keeps the last lines of its ranks by
// supervise/failure_report.h.)
class StreamTail {
 public:
  void Add(const char* text, size_t size);
  // Ends the text: a last line without a line end counts as well.
  void End();
  int size() const { return count_ < kReportedLines ? count_ : kReportedLines; }
  // 0 is the oldest.
  const char* line(int index) const { return lines_[(count_ - size() + index) % kReportedLines]; }

 private:
  char lines_[kReportedLines + 1][kReportedLineBytes + 1] =
      {};  // the one that is being written last
  size_t length_ = 0;
  int count_ = 0;
};

// Puts marks into a text that comes in pieces, at the beginning of each line that ddlrun could take
// for one of srun or mpirun (MayBeLineOfLauncher).  It has a fixed size and no C++ library.
class OutputMarks {
 public:
  static constexpr size_t kMaxBytes = 16384;  // of a piece

  // Before the first piece.  Without a key nothing is marked.
  void SetKey(const char* key);
  // Writes a piece of the text to `fd`, a mark and its line at once: another rank may write to the
  // same place.
  void Write(int fd, const char* text, size_t size);

 private:
  void WriteLines(int fd, bool is_marked, const char* text, size_t size);

  RankEvent mark_ = {};
  bool is_at_start_ = true;  // of a line
  char marked_[sizeof(RankEvent) + kMaxBytes] = {};
};

// Writes a text that comes in pieces in whole lines, each with one call: the daemons of mpirun and
// mpiexec pass on what they read, and pieces of lines of several ranks would be mixed.  It has a
// fixed size and no C++ library.
class WholeLines {
 public:
  static constexpr size_t kMaxPiece = OutputMarks::kMaxBytes;
  // A beginning of a line, such as a question or a progress bar, is held this long.
  static constexpr int kMaxWaitMs = 20;

  // Writes all lines that `text`, of at most kMaxPiece bytes, ends.
  void Write(int fd, const char* text, size_t size);
  // Writes what is held.
  void Flush(int fd);
  bool is_holding() const { return size_ > 0; }

 private:
  char held_[2 * kMaxPiece] = {};
  size_t size_ = 0;
};

// Puts a text that comes in pieces into frames (rank_event.h).  It has a fixed size and no C++
// library.
class OutputFrames {
 public:
  void SetRank(const char* key, int rank);
  // Writes frames of all lines that `text` ends.
  void Write(int fd, const char* text, size_t size);
  // Writes what is held of a line; at the end of the text, as one that is over.
  void Flush(int fd);
  void End(int fd);
  bool is_holding() const { return size_ > 0; }

 private:
  void AddFrame(int fd, FrameEnd end);
  void WriteBatch(int fd);

  RankEvent heads_[3] = {};  // of a line, a '\r', a beginning
  char held_[kFrameBytes] = {};
  size_t size_ = 0;
  bool has_begun_ = false;  // a line, of which a frame was written
  char batch_[4 * kFrameBytes] = {};
  size_t batch_size_ = 0;
};

struct RelayOptions {
  int log = -1;          // descriptor of the rank's log file
  const char* key = "";  // of the reports to ddlrun
  int rank = 0;          // of the frames
  bool has_frames = false;
  bool is_shown = true;           // false: nothing is passed on
  bool passes_on_output = false;  // where nothing else needs standard output
};

class OutputRelay {
 public:
  // False, with errno, if there are no pipes.
  bool Open(const RelayOptions& options);

  // In the child, between fork and exec.
  void ConnectChild() const;
  // In the parent, after fork.
  void CloseChildEnds();
  // Passes output on until `child` has ended, and returns its wait status.  It does not wait for
  // processes that the child has started, which may hold the pipes open for longer; other children
  // of this process that end are reaped.  SIGCHLD must be blocked and have a handler; all signals
  // are unblocked while this waits.  `look` is called with `context` whenever something has
  // happened; it returns in how many milliseconds it is to be called at the latest.
  int WaitFor(pid_t child, int (*look)(void* context), void* context);
  // Passes on what is there, but no more than pipes hold: somebody may go on writing.
  void PassOnRest();
  // Nothing more is passed on: ends a line in frames that has no end.
  void EndLines();

  // Of standard error.
  const StreamTail& last_lines() const { return last_lines_; }

 private:
  struct Stream {
    int to = -1;  // STDOUT_FILENO, STDERR_FILENO; -1: not ours
    int read_end = -1;
    int write_end = -1;
  };

  bool PassOn(const Stream& stream);
  void PassOnReady();
  void FlushLines();

  Stream streams_[2];
  OutputMarks marks_;  // of standard error
  WholeLines lines_;   // of standard output
  OutputFrames frames_[2];
  RelayOptions options_;
  pollfd ready_[2] = {{-1, POLLIN, 0}, {-1, POLLIN, 0}};
  StreamTail last_lines_;
};

}  // namespace launcher
