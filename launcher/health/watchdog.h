// SPDX-License-Identifier: Apache-2.0
//
// Ends this process when its time is up or a signal asks for it, whatever the rest of it waits for.

#pragma once

#include <chrono>
#include <functional>

namespace launcher {

// Blocks SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 for this thread and those it starts, and has the
// kernel end the process `limit` after now: for what comes before the Watchdog.  Call first.
void LimitLifetime(std::chrono::seconds limit);

// A thread that ends the process: at `deadline` it calls `on_deadline` and exits with 0; after one
// of the signals above it exits with 128 + number.  There is no way to stop it but to exit.
void StartWatchdog(std::chrono::steady_clock::time_point deadline,
                   std::function<void()> on_deadline);

}  // namespace launcher
