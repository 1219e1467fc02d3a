// SPDX-License-Identifier: Apache-2.0

#include "launcher/health/node/watchdog.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <thread>

namespace launcher {
namespace {

sigset_t EndingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) {
    sigaddset(&signals, number);
  }
  return signals;
}

[[noreturn]] void Watch(std::chrono::steady_clock::time_point deadline,
                        const std::function<void()>& on_deadline) {
  const sigset_t signals = EndingSignals();
  while (true) {
    const auto left =
        std::max(std::chrono::nanoseconds(0),
                 std::chrono::nanoseconds(deadline - std::chrono::steady_clock::now()));
    timespec timeout = {};
    timeout.tv_sec = left.count() / 1'000'000'000;
    timeout.tv_nsec = left.count() % 1'000'000'000;
    const int number = sigtimedwait(&signals, nullptr, &timeout);
    if (number > 0) _exit(128 + number);
    if (errno != EAGAIN) continue;  // EINTR: another signal had a handler
    on_deadline();
    _exit(0);
  }
}

}  // namespace

void LimitLifetime(std::chrono::seconds limit) {
  const sigset_t signals = EndingSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  alarm(static_cast<unsigned>(limit.count()));
}

void StartWatchdog(std::chrono::steady_clock::time_point deadline,
                   std::function<void()> on_deadline) {
  std::thread([deadline, action = std::move(on_deadline)] { Watch(deadline, action); }).detach();
}

}  // namespace launcher
