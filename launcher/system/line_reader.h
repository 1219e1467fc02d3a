// SPDX-License-Identifier: Apache-2.0
//
// Output of a child as it comes out of a pipe: whole lines, so that those of two ranks do not mix,
// or whatever is there.

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "launcher/system/descriptor.h"

namespace launcher {

// A line that is longer comes in parts.
inline constexpr std::size_t kMaxLineBytes = 65536;

class LineReader {
 public:
  enum class Unit { kLines, kChunks };

  // `from` is non-blocking.  `on_text` is called with each line and its end ('\n', or '\r' so that
  // a progress bar is seen moving), or with each chunk.
  LineReader(Descriptor from, Unit unit, std::function<void(std::string_view)> on_text);

  int fd() const { return from_.fd(); }
  bool is_open() const { return from_.is_open(); }

  // Reads what is there now, at most kMaxLineBytes: a child that never stops writing must not keep
  // ddlrun from its other work.  False when nothing was there.  At the end of the input a last line
  // without an end is given as well, and the pipe is closed.
  bool Read();

  // After as many bytes as the pipe can hold it is taken to be at its end: a process that its
  // writer has left behind may write for ever.
  void ReadNoMoreThanThePipeHolds();

 private:
  void Give(std::size_t bytes);

  Descriptor from_;
  Unit unit_;
  std::function<void(std::string_view)> on_text_;
  std::string pending_;                   // of a line that is not whole
  std::size_t left_ = std::string::npos;  // bytes to be read before the end
};

// `line` without its end.
std::string_view WithoutEnd(std::string_view line);

}  // namespace launcher
