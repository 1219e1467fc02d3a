// SPDX-License-Identifier: Apache-2.0
//
// Ends this process when its time is up or a signal asks for it, whatever its other threads wait
// for.

#pragma once

#include <chrono>
#include <functional>

namespace launcher {

// For the time before StartWatchdog: has the kernel end the process when `limit` is over.  Also
// blocks SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 for this thread and those that it starts.  To
// be called before all else.
void LimitLifetime(std::chrono::seconds limit);

// Starts a thread that ends the process.  At `deadline` it calls `on_deadline` and exits with 0;
// after one of the signals above it exits with 128 plus the number of the signal.  It runs until
// the process ends.
void StartWatchdog(std::chrono::steady_clock::time_point deadline,
                   std::function<void()> on_deadline);

}  // namespace launcher
