// SPDX-License-Identifier: Apache-2.0
//
// Adds to the end of a log all of something or nothing.

#pragma once

#include <string_view>

namespace trainer {

struct Appended {
  int error = 0;         // errno
  bool is_whole = true;  // false: a part of it was written, and could not be taken back
};

// `fd` was opened to append.  `is_own`: nobody else writes to the file, so what a failed write has
// left may be cut off.
Appended AppendWhole(int fd, std::string_view text, bool is_own);

}  // namespace trainer
