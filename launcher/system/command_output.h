// SPDX-License-Identifier: Apache-2.0
//
// A short command whose output ddlrun reads, such as scontrol or srun --mpi=list.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/system/child_process.h"

namespace launcher {

class CommandOutput {
 public:
  // Starts `argv` (argv[0] is a path) and returns at once.  Throws LaunchError as StartChild does.
  CommandOutput(const std::vector<std::string>& argv, const Environment& environment);
  // Kills what still runs.
  ~CommandOutput();
  CommandOutput(const CommandOutput&) = delete;
  CommandOutput& operator=(const CommandOutput&) = delete;

  // Waits for the end of the command, and kills it when `limit` is over.  True when it exited with
  // 0.
  bool Wait(std::chrono::milliseconds limit);
  // Whether it has ended, without waiting.  Where somebody else has reaped it, Wait takes it for
  // one that failed.
  bool HasEnded();
  // Whether a signal that somebody else has sent ended the command.  To be asked when it has ended.
  bool WasKilledByOthers() const;

  // 0 once it is known to have ended.
  pid_t pid() const { return child_.pid; }
  // What it wrote, standard output and standard error mixed; at most 16 MiB.
  const std::string& text() const { return text_; }

 private:
  ChildProcess child_;  // pid is 0 once it has ended
  int status_ = 0;      // as waitpid has it
  bool is_over_limit_ = false;
  std::string text_;
};

}  // namespace launcher
