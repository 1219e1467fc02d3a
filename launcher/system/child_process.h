// SPDX-License-Identifier: Apache-2.0
//
// Starts one child of ddlrun, in a session of its own and so without a terminal: in the background
// of ddlrun's the kernel would stop it where it asks there (getpass, ssh), without a word.

#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

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

// Throws LaunchError: EX_UNAVAILABLE when argv[0] cannot be executed, EX_OSERR when the system has
// no more processes or files.  For single-threaded callers.
ChildProcess StartChild(const ChildSpec& spec);

}  // namespace launcher
