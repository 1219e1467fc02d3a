// SPDX-License-Identifier: Apache-2.0
//
// The log for people: one line per event,
//   2026-01-02T03:04:05.678+01:00 [rank 3] warning: message
// Thread-safe.  main hands in the stream (stderr), or the line that is redrawn there, and keeps it
// alive.

#pragma once

#include <spdlog/logger.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

#include "support/descriptor.h"

namespace trainer {

// A line that stands at the end of a terminal and is redrawn in place, and how people are shown the
// progress of long work.

struct ProgressOptions {
  bool terminal = false;     // main: isatty(2)
  bool color = false;        // main: terminal and NO_COLOR not set
  bool beside_text = false;  // main: terminal, and standard output is one too
  // Of the terminal, asked at each redraw: people make it narrower.
  std::function<int()> columns = [] { return 80; };
  double interval_seconds = 10;  // between lines in a file
  double redraw_seconds = 0.2;   // between redraws on a terminal
};

class RedrawnLine {
 public:
  // `out` must stay alive.
  explicit RedrawnLine(std::ostream& out) : out_(out) {}

  // Shows `text`, without a line end, in the place of what was drawn before.
  void Draw(std::string_view text);
  // Whole lines, behind what was drawn.  Flushed.
  void Write(std::string_view lines);
  // What was drawn stays: whatever comes next, also from elsewhere, is on a line of its own.
  void End();

 private:
  void EndLocked();
  void Put(std::string_view text);

  std::mutex mutex_;
  std::ostream& out_;
  bool is_open_ = false;
};

using Logger = std::shared_ptr<spdlog::logger>;

// `level`: "debug", "info", "warning", "error" or "off"; throws Error(EX_USAGE) that lists them for
// any other.  Every line is flushed: a rank that dies has said all it knew.
Logger MakeLogger(std::ostream& out, int rank, std::string_view level);
// Each on a line of its own behind `line`.
Logger MakeLogger(RedrawnLine& line, int rank, std::string_view level);

// Files that logs are written to: lines that are there whole or not at all, also on a disk that is
// full, and small files that are replaced as a whole.  Not thread-safe.

struct Appended {
  int error = 0;         // errno
  bool is_whole = true;  // false: a part of it was written, and could not be taken back
};

// `fd` was opened to append.  `is_own`: nobody else writes to the file, so what a failed write has
// left may be cut off.
Appended AppendWhole(int fd, std::string_view text, bool is_own);

// A stream buffer for logs on a file descriptor.  What an ordinary one loses on a full disk it
// loses in silence, and for good; this one tells, counts, and goes on when there is room again.
class LineOutput : public std::streambuf {
 public:
  // `fd` belongs to the caller and outlives it.  `is_own`: nobody else writes to the file, so what
  // a failed write has left of a line may be cut off.  `on_loss` is told errno when a line is lost
  // and the one before was not.  `before_lines`, if there is one, is called before any are written.
  LineOutput(int fd, bool is_own, std::function<void(int error)> on_loss,
             std::function<void()> before_lines = nullptr);

  std::int64_t lost_lines() const { return lost_lines_; }

 protected:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  // Writes what has come since the last flush.  0 even if it is lost: the stream stays usable.
  int sync() override;

 private:
  int Write(std::string_view text);
  void Lose(int error);

  const int fd_;
  const bool is_own_;
  const std::function<void(int)> on_loss_;
  const std::function<void()> before_lines_;
  std::string pending_;
  bool is_torn_ = false;    // the file ends within a line
  bool is_losing_ = false;  // the last flush was lost
  std::int64_t lost_lines_ = 0;
};

class ReplacedFile {
 public:
  // `on_loss` is told errno when a text cannot be written and the one before could.
  ReplacedFile(std::filesystem::path path, std::function<void(int error)> on_loss);

  const std::filesystem::path& path() const { return path_; }

  // Where it fails, what was there before still is.
  void Write(std::string_view text);

 private:
  const std::filesystem::path path_;
  const std::function<void(int)> on_loss_;
  bool is_losing_ = false;  // the last text was lost
};

// Tells `log` that lines, or what else `what` is, of `where` are lost.
std::function<void(int error)> LogDroppedOutput(const Logger& log, const std::string& where,
                                                const std::string& what = "lines");
// For ReplacedFile: tells `log` that files in `where` have an old text.
std::function<void(int error)> LogOldText(const Logger& log, const std::string& where);
// How many were lost, if any were.
void LogDroppedOutputs(const Logger& log, const std::string& where, std::int64_t count,
                       const std::string& what = "line");

// Throws Error(EX_OSERR) that names `path`, errno `error`, and says to give `instead` ("another
// --results_dir").
[[noreturn]] void RejectFile(const std::filesystem::path& path, int error,
                             std::string_view instead);

class LogFile {
 public:
  // Throws as RejectFile does if it cannot be written.
  LogFile(const std::filesystem::path& path, std::string_view instead, const Logger& log);
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  std::ostream& stream() { return stream_; }
  // To be called at the end.
  void LogDroppedOutputs() const;

 private:
  const Logger log_;
  const std::string path_;
  const support::Descriptor file_;
  LineOutput buffer_;
  std::ostream stream_{&buffer_};
};

}  // namespace trainer
