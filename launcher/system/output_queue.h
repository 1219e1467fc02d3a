// SPDX-License-Identifier: Apache-2.0
//
// Writes to ddlrun's own standard output or standard error without waiting for whoever reads it: a
// terminal that is stopped, or a pager that shows its first page, must not keep ddlrun from its
// ranks.

#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include "launcher/base/error.h"
#include "support/descriptor.h"

namespace launcher {

class OutputQueue {
 public:
  using Clock = std::chrono::steady_clock;

  // A queue that holds this much is full.  The last Add may go beyond it.
  static constexpr std::size_t kMaxBytes = 1048576;

  // `to` belongs to the caller; it is neither closed nor are its flags changed.
  explicit OutputQueue(int to);

  // To be polled for POLLOUT while the queue is not empty.
  int fd() const { return own_.is_open() ? own_.fd() : to_; }
  bool IsEmpty() const { return waiting_.empty(); }
  bool IsFull() const { return waiting_.size() >= kMaxBytes; }
  // Whether Add may be called: the queue is not full, or drops what does not fit.
  bool HasCapacity() const { return drops_ || !IsFull(); }
  // When the reader last took something or, if that is later, when the text that waits was added.
  Clock::time_point taken_at() const { return taken_at_; }

  // Adds `text` to the queue.  It is dropped where nobody can read any more and, after
  // DropWhatDoesNotFit, where the queue is full.
  void Add(std::string_view text);
  // Writes what the reader takes now.  What a full disk has no room for is dropped, and what
  // another trouble keeps from a file.  False, only once, when nobody can read any more.
  bool Write();

  void DropWhatDoesNotFit() { drops_ = true; }
  void DropAll();
  // How many lines were dropped: by these two, or because of problem().
  long dropped_lines() const { return dropped_lines_; }
  // Why lines were dropped without these two, "No space left on device"; "" where none were.
  const std::string& problem() const { return problem_; }

 private:
  ssize_t WriteSome(std::string_view text) const;
  void CountDropped(std::string_view text);

  int to_;
  support::Descriptor
      own_;  // a non-blocking descriptor of the same file; not open for some kinds of file
  bool is_socket_ = false;
  bool is_file_ = false;
  bool is_closed_ = false;  // nobody can read any more
  bool drops_ = false;
  std::string waiting_;
  Clock::time_point taken_at_;
  long dropped_lines_ = 0;
  std::string problem_;
};

// Whether both are the same pipe, terminal or file.
bool AreSameFile(int fd, int other);

// Writes `text`, a message of ddlrun itself, to `to`.  It waits for the reader, as any program
// does. Once ddlrun is told to stop, by `is_stop_requested` or by a signal that is pending, it
// waits no longer than `timeout`.
void WriteMessage(int to, std::string_view text, bool is_stop_requested,
                  std::chrono::milliseconds timeout);

// To the standard output, at once.  Throws LaunchError(EX_OSERR).
inline void Print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    throw OsError("cannot write to the standard output");
  }
}

// Writes to standard error.  Where nobody reads it and the program was told to stop, it gives up
// after three seconds.
inline void Say(const std::string& text, bool is_stop_requested = false) {
  WriteMessage(STDERR_FILENO, text, is_stop_requested, std::chrono::seconds(3));
}

}  // namespace launcher
