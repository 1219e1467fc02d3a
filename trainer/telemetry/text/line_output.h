// SPDX-License-Identifier: Apache-2.0
//
// A stream buffer for logs on a file descriptor.  What an ordinary one loses on a full disk it
// loses in silence, and for good; this one tells, counts, and goes on when there is room again.
// Each line is there whole or not at all.
//
// Not thread-safe.

#pragma once

#include <cstdint>
#include <functional>
#include <streambuf>
#include <string>

namespace trainer {

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

}  // namespace trainer
