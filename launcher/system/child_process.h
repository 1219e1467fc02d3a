// SPDX-License-Identifier: Apache-2.0
//
// Starts one child of ddlrun, in a session of its own and so without a terminal: in the background
// of ddlrun's the kernel would stop it where it asks there (getpass, ssh), without a word.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "support/descriptor.h"

namespace launcher {

struct ChildSpec {
  std::vector<std::string> argv;         // argv[0] is a path
  std::vector<std::string> environment;  // "NAME=value"
  int death_signal = SIGKILL;            // what the kernel sends it when ddlrun dies
  bool reads_stdin = false;    // that of ddlrun, unless it is a terminal; otherwise /dev/null
  bool capture_stdout = true;  // by a pipe; false: it is that of ddlrun
  bool capture_stderr = true;
  sigset_t signal_mask = {};
};

struct ChildProcess {
  pid_t pid = 0;                    // also its process group and session
  support::Descriptor stdout_pipe;  // non-blocking; not open when not captured
  support::Descriptor stderr_pipe;
};

// The child has the limit on open files with which ddlrun was started (open_files.h).
// Throws LaunchError: EX_UNAVAILABLE when argv[0] cannot be executed, EX_OSERR when the system has
// no more processes or files.  For single-threaded callers.
ChildProcess StartChild(const ChildSpec& spec);

// A short command whose output ddlrun reads, such as scontrol or srun --mpi=list.
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

// The last line with text, which with most programs is the reason why they failed; "" for none.
std::string LastLineOf(std::string text);

}  // namespace launcher
