// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/watchdog.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

[[noreturn]] void WaitForEver() {
  while (true) pause();
}

TEST(Watchdog, EndsAProcessThatWaitsForEverAndSaysSo) {
  EXPECT_EXIT(
      {
        LimitLifetime(seconds(60));
        StartWatchdog(steady_clock::now() + milliseconds(50),
                      [] { std::fputs("time is up", stderr); });
        WaitForEver();
      },
      testing::ExitedWithCode(0), "time is up");
}

TEST(Watchdog, EndsTheProcessWhenASignalAsksForIt) {
  EXPECT_EXIT(
      {
        LimitLifetime(seconds(60));
        kill(getpid(), SIGTERM);  // before the watchdog: it waits
        StartWatchdog(steady_clock::now() + seconds(60), [] {});
        WaitForEver();
      },
      testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST(Watchdog, IsBackedByTheKernel) {
  EXPECT_EXIT(
      {
        LimitLifetime(seconds(1));
        WaitForEver();
      },
      testing::KilledBySignal(SIGALRM), "");
}

}  // namespace
}  // namespace launcher
