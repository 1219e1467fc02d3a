// SPDX-License-Identifier: Apache-2.0
//
// The lines of a log file one by one, in memory that does not grow with the file or with a line.
// Not thread-safe.

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "support/descriptor.h"

namespace bench {

// What a line may have; the rest of a longer one is read and forgotten.
inline constexpr std::size_t kMaxLineBytes = std::size_t{64} * 1024;

struct LogLine {
  std::string_view text;    // without its end; bytes as they are in the file
  std::int64_t number = 0;  // from 1
  bool is_whole = true;     // false: the file ends within it
  bool is_cut = false;      // longer than kMaxLineBytes
};

class LogLines {
 public:
  // A file that is growing has no last line yet: Next leaves out what is not a whole line.
  // Throws trainer::Error naming `path`: EX_NOINPUT when it cannot be opened or is no regular file.
  explicit LogLines(const std::filesystem::path& path, bool is_growing = false);

  // The next line, whose text lasts until the next call; false at the end, and where no whole line
  // has been added to a file that is growing: call again later.
  // Throws trainer::Error(EX_NOINPUT) when the file cannot be read on.
  bool Next(LogLine& line);

 private:
  // Reads more; false at the end of the file.
  bool Fill();

  const std::filesystem::path path_;
  const bool is_growing_;
  support::Descriptor file_;
  std::vector<char> buffer_;
  std::string_view unread_;  // of the buffer
  std::string text_;         // of the line that is being read
  bool is_in_line_ = false;
  bool is_cut_ = false;
  std::int64_t number_ = 0;
};

// Whether `text` is UTF-8 as Python reads it: no overlong forms, no surrogates.  Pure.
bool IsUtf8(std::string_view text);

}  // namespace bench
