// SPDX-License-Identifier: Apache-2.0
//
// A part of a test in a process of its own, for what cannot be undone: limits, refused system
// calls, death.

#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

namespace trainer {

// Runs `body` in a child process and returns how it ended, as waitpid says.
inline int RunInChild(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

// The same for a body that says whether all is as it should be.
inline bool HoldsInChild(const std::function<bool()>& body) {
  const int status = RunInChild([&] { ::_exit(body() ? 0 : 1); });
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace trainer
