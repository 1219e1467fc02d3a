// SPDX-License-Identifier: Apache-2.0
//
// The shim's hold on what its program writes: standard error passes through it, so that the last
// lines can be told when the rank fails; with a log file standard output does as well.

#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <string_view>

#include "launcher/rank/tail.h"

namespace launcher {

class OutputRelay {
 public:
  // `log`: descriptor of the rank's log file, or -1.  Throws LaunchError(EX_OSERR).
  explicit OutputRelay(int log);

  // In the child, between fork and exec.
  void ConnectChild() const;
  // In the parent, after fork.
  void CloseChildEnds();
  // Passes output on until `child` has ended and returns its wait status.  What the child has
  // started may hold the pipes open for longer.  SIGCHLD must be blocked, with a handler; it, and
  // all else that is blocked, is let through while this waits.
  int WaitFor(pid_t child);

  // Of standard error.
  const Tail& last_lines() const { return last_lines_; }

 private:
  struct Stream {
    int to = -1;  // STDOUT_FILENO, STDERR_FILENO; -1: not ours
    int read_end = -1;
    int write_end = -1;
  };

  bool PassOn(const Stream& stream);
  void Remember(std::string_view text);

  std::array<Stream, 2> streams_;
  int log_;
  Tail last_lines_;
  std::string unfinished_line_;
};

// All of `text`, as far as somebody reads.
void WriteAll(int fd, std::string_view text);

}  // namespace launcher
