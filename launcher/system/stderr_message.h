// SPDX-License-Identifier: Apache-2.0
//
// Text for the user who started the program.

#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "launcher/system/os_error.h"
#include "launcher/system/output_queue.h"

namespace launcher {

// To the standard output, at once.  Throws LaunchError(EX_OSERR).
inline void Print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    throw OsError("cannot write to the standard output");
  }
}

// Writes to standard error.  Where nobody reads it and the program was told to stop, it gives up
// after three seconds.
inline void Say(const std::string& text, bool is_stop_requested = false) {
  WriteMessage(STDERR_FILENO, text, is_stop_requested, std::chrono::seconds(3));
}

}  // namespace launcher
