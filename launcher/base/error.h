// SPDX-License-Identifier: Apache-2.0
//
// The one exception of the launcher.  It ends ddlrun: main prints what() and exits with
// exit_code().  what() is one line that says what is wrong, where (variable, file, host, rank) and
// what to type instead.

#pragma once

#include <sysexits.h>

#include <stdexcept>
#include <string>

namespace launcher {

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

}  // namespace launcher
