// SPDX-License-Identifier: Apache-2.0
//
// Exit codes of ddlrun and its shim.  The first failing rank's own code is passed through (128 + n
// when signal n ended it); ddlrun's own failures are the numbers of sysexits.h below.  Pure.
//
//   64 EX_USAGE        the command line          70 EX_SOFTWARE   a mistake of ours
//   65 EX_DATAERR      a file given is wrong     71 EX_OSERR      the operating system refused
//   69 EX_UNAVAILABLE  a rank did not start      75 EX_TEMPFAIL   stopped early with a checkpoint
//   78 EX_CONFIG       site file or allocation                    written (a rank's own code)

#pragma once

#include <sys/wait.h>
#include <sysexits.h>

namespace launcher {

// The exit code that a shell shows for this status of waitpid: 128 + n where signal n ended the
// program.
inline int ExitCodeOfWaitStatus(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Whether it is the exit code of a program that failed, which includes 128 + n for signal n.
inline bool IsFailure(int exit_code) { return exit_code > 0 && exit_code <= 255; }

}  // namespace launcher
