// SPDX-License-Identifier: Apache-2.0
//
// Exit codes of ddlrun and its shim, and the one exception of the launcher.

#pragma once

#include <sys/wait.h>
#include <sysexits.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace launcher {

// Exit codes of ddlrun and its shim.  The first failing rank's own code is passed through (128 + n
// when signal n ended it); ddlrun's own failures are the numbers of sysexits.h below.  Pure.
//
//   64 EX_USAGE        the command line          70 EX_SOFTWARE   a mistake of ours
//   65 EX_DATAERR      a file given is wrong     71 EX_OSERR      the operating system refused
//   69 EX_UNAVAILABLE  a rank did not start      75 EX_TEMPFAIL   stopped early with a checkpoint
//   78 EX_CONFIG       site file or allocation                    written (a rank's own code)

// The exit code that a shell shows for this status of waitpid: 128 + n where signal n ended the
// program.
inline int ExitCodeOfWaitStatus(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Whether it is the exit code of a program that failed, which includes 128 + n for signal n.
inline bool IsFailure(int exit_code) { return exit_code > 0 && exit_code <= 255; }

// LaunchError ends ddlrun: main prints what() and exits with exit_code().  what() is one line that
// says what is wrong, where (variable, file, host, rank) and what to type instead.
class LaunchError : public std::runtime_error {
 public:
  // `exit_code` is one of EX_USAGE, EX_DATAERR, EX_UNAVAILABLE, EX_SOFTWARE, EX_OSERR, EX_CONFIG
  // (doc/reference/exit-codes.md has the table).
  LaunchError(int exit_code, const std::string& message)
      : std::runtime_error(message), exit_code_(exit_code) {}

  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// "cannot make a pipe: Too many open files"; the reason is that of errno.
inline LaunchError OsError(const std::string& action) {
  return LaunchError(EX_OSERR, action + ": " + std::strerror(errno));
}

}  // namespace launcher
