// SPDX-License-Identifier: Apache-2.0
//
// Reads the output of a child from a pipe: in whole lines, so that the lines of two ranks do not
// mix, or in chunks of whatever is there.

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "support/descriptor.h"

namespace launcher {

// A longer line is given in parts: a child that never ends its line must not take all memory.
inline constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

class LineReader {
 public:
  enum class Unit { kLines, kChunks };

  // `from` is non-blocking.  `on_text` is called with each line and its end ('\n', or '\r' so that
  // a progress bar is seen moving), or with each chunk.
  LineReader(support::Descriptor from, Unit unit, std::function<void(std::string_view)> on_text);

  int fd() const { return from_.fd(); }
  bool is_open() const { return from_.is_open(); }

  // Reads what is there now, at most 64 KiB: a child that never stops writing must not keep
  // ddlrun from its other work.  False when nothing was there.  At the end of the input a last line
  // without an end is given as well, and the pipe is closed.
  bool Read();

  // From now on no more bytes are read than the pipe can hold, and then it is taken to be at its
  // end. For a pipe whose writer has ended: a process that it has left behind may write for ever.
  void ReadNoMoreThanThePipeHolds();

 private:
  void Give(std::size_t bytes);

  support::Descriptor from_;
  Unit unit_;
  std::function<void(std::string_view)> on_text_;
  std::string pending_;                   // the beginning of a line whose end has not come yet
  std::size_t left_ = std::string::npos;  // bytes that are read before the pipe is closed
};

// Where the first '\n' or '\r' is; npos: nowhere.  find_first_of takes ten times as long; memchr of
// each would look at the whole rest for every line of a progress bar.
inline std::size_t FindLineEnd(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' || text[i] == '\r') return i;
  }
  return std::string_view::npos;
}

// `line` without its end.
std::string_view WithoutEnd(std::string_view line);

}  // namespace launcher
