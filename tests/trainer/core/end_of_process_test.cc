// SPDX-License-Identifier: Apache-2.0

#include "trainer/core/end_of_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace trainer {
namespace {

// How a process ends that ignores SIGTERM and runs `end`: the signal, or 1000 + its exit code.
int EndOf(void (*end)()) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGTERM, SIG_IGN);
    std::signal(SIGURG, [](int) { EndProcessSoon(); });
    end();
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 1000 + WEXITSTATUS(status);
}

TEST(EndOfProcess, ComesAtOnce) {
  EXPECT_EQ(EndOf([] { raise(SIGURG); }), SIGTERM);
  EXPECT_EQ(EndOf([] { const DelayedEnd delayed; }), 1007);
}

TEST(EndOfProcess, WaitsForTheLastThatDelaysIt) {
  EXPECT_EQ(EndOf([] {
              const DelayedEnd delayed;
              raise(SIGURG);
              _exit(5);
            }),
            1005);
  EXPECT_EQ(EndOf([] {
              const DelayedEnd delayed;
              {
                const DelayedEnd other;
                raise(SIGURG);
              }
              _exit(6);
            }),
            1006);
  EXPECT_EQ(EndOf([] {
              {
                const DelayedEnd delayed;
                raise(SIGURG);
              }
              _exit(8);
            }),
            SIGTERM);
}

}  // namespace
}  // namespace trainer
