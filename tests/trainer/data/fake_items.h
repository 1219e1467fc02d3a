// SPDX-License-Identifier: Apache-2.0
//
// What tests of ReadAhead have instead of storage.

#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <thread>

namespace trainer {

inline constexpr std::int64_t kNoLastItem = std::int64_t{1} << 60;

inline void Fill(std::int64_t item, std::span<std::uint8_t> bytes) {
  std::ranges::fill(bytes, static_cast<std::uint8_t>(item));
}

inline bool IsFilled(std::int64_t item, std::span<const std::uint8_t> bytes) {
  return std::ranges::all_of(
      bytes, [&](std::uint8_t byte) { return byte == static_cast<std::uint8_t>(item); });
}

// As storage does that has not got the bytes in memory.  On a busy machine the time may be over
// before the thread has gone to sleep: once more then.
inline void Sleep() {
  const auto sleeps = [] {
    rusage use{};
    ::getrusage(RUSAGE_THREAD, &use);
    return use.ru_nvcsw;
  };
  for (const long before = sleeps(); sleeps() == before;) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace trainer
