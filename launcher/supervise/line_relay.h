// SPDX-License-Identifier: Apache-2.0
//
// Output of a rank on its way to ddlrun's own: whole lines, so that those of two ranks do not mix.

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "launcher/supervise/child_process.h"

namespace launcher {

// A line that is longer is passed on in parts.
inline constexpr std::size_t kMaxLineBytes = 65536;

class LineRelay {
 public:
  // Reads `from`, writes to `to` (not owned), `tag` in front of each line.  `on_line` is called
  // with each line without its end and says whether it is passed on.
  LineRelay(Descriptor from, int to, std::string tag,
            std::function<bool(std::string_view)> on_line);

  int fd() const { return from_.fd(); }
  bool is_open() const { return from_.is_open(); }

  // Passes on what is there now; at the end of the input also a last line without '\n', and closes.
  // A carriage return ends a line as well, so that a progress bar is seen moving.
  // False when nobody reads `to` any more.
  bool Relay();

 private:
  bool PassOn(std::size_t bytes);

  Descriptor from_;
  int to_;
  std::string tag_;
  std::function<bool(std::string_view)> on_line_;
  std::string pending_;
};

}  // namespace launcher
