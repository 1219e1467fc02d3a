// SPDX-License-Identifier: Apache-2.0
//
// Text for the user who started the program.

#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "launcher/system/output_queue.h"

namespace launcher {

inline void Print(const std::string& text) { std::fputs(text.c_str(), stdout); }

// Writes to standard error.  Where nobody reads it and the program was told to stop, it gives up
// after three seconds.
inline void Say(const std::string& text, bool is_told_to_stop = false) {
  WriteMessage(STDERR_FILENO, text, is_told_to_stop, std::chrono::seconds(3));
}

}  // namespace launcher
