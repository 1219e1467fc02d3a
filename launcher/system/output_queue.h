// SPDX-License-Identifier: Apache-2.0
//
// What ddlrun writes to its own standard output or standard error, without waiting for whoever
// reads it: a terminal that is stopped or a pipe to a pager that shows its first page must not keep
// ddlrun from its ranks.

#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "launcher/system/descriptor.h"

namespace launcher {

class OutputQueue {
 public:
  using Clock = std::chrono::steady_clock;

  // A queue that holds so much is full; what comes with one more Add may be beyond it.
  static constexpr std::size_t kMaxBytes = 1048576;

  // `to` stays the caller's, stays open and keeps its flags.
  explicit OutputQueue(int to);

  // To be polled for POLLOUT while the queue is not empty.
  int fd() const { return own_.is_open() ? own_.fd() : to_; }
  bool IsEmpty() const { return waiting_.empty(); }
  bool IsFull() const { return waiting_.size() >= kMaxBytes; }
  // Whether more may be added: the queue is not full, or drops.
  bool HasRoom() const { return drops_ || !IsFull(); }
  // When the reader last took something, or what waits began to wait.
  Clock::time_point taken_at() const { return taken_at_; }

  // Dropped where nobody can read any more, and from DropWhatDoesNotFit on where the queue is full.
  void Add(std::string_view text);
  // Writes what the reader takes now; what a full disk has no room for is dropped.  False when
  // nobody can read any more; once only.
  bool Write();

  void DropWhatDoesNotFit() { drops_ = true; }
  void DropAll();
  // By these two, or a full disk.
  long dropped_lines() const { return dropped_lines_; }
  // "No space left on device", if that was so; else "".
  const std::string& problem() const { return problem_; }

 private:
  ssize_t WriteSome(std::string_view text) const;
  void CountDropped(std::string_view text);

  int to_;
  Descriptor own_;  // of the same file, non-blocking
  bool is_socket_ = false;
  bool is_file_ = false;
  bool is_closed_ = false;  // nobody can read any more
  bool drops_ = false;
  std::string waiting_;
  Clock::time_point taken_at_;  // the reader took something, or the first text began to wait
  long dropped_lines_ = 0;
  std::string problem_;
};

// Whether both are the same pipe, terminal or file.
bool AreSameFile(int fd, int other);

// Writes `text`, a message of ddlrun itself, to `to`.  Waits for the reader like any program, but
// no longer than `patience` where `is_told_to_stop` or a signal that says so is pending.
void WriteMessage(int to, std::string_view text, bool is_told_to_stop,
                  std::chrono::milliseconds patience);

}  // namespace launcher
