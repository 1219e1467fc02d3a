// SPDX-License-Identifier: Apache-2.0

#include "trainer/telemetry/text/clock.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <ctime>

namespace trainer {
namespace {

struct SplitTime {
  std::time_t seconds;
  std::int64_t nanoseconds;  // [0, 1e9)
};

SplitTime Split(TimePoint time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  return {std::chrono::system_clock::to_time_t(whole),
          std::chrono::duration_cast<std::chrono::nanoseconds>(time - whole).count()};
}

}  // namespace

WallClock SystemClock() {
  return [] { return std::chrono::system_clock::now(); };
}

double InSeconds(TimePoint::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string UnixSeconds(TimePoint time, int digits) {
  const SplitTime split = Split(time);
  std::string text = fmt::format("{}.{:09}", split.seconds, split.nanoseconds);
  text.resize(text.size() - static_cast<std::size_t>(9 - digits));
  return text;
}

std::string IsoTime(TimePoint time) {
  std::string text = fmt::format("{:%Y-%m-%dT%H:%M:%S%z}", fmt::localtime(Split(time).seconds));
  text.insert(text.size() - 2, ":");  // +0100 -> +01:00
  return text;
}

std::string PythonDatetime(TimePoint time) {
  const SplitTime split = Split(time);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06}", fmt::localtime(split.seconds),
                     split.nanoseconds / 1000);
}

std::string FormatDuration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e10) return "?";
  const auto total = static_cast<long long>(std::llround(seconds));
  const long long days = total / 86400;
  if (days == 0) return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
  return fmt::format("{}d {:02}:{:02}:{:02}", days, total / 3600 % 24, total / 60 % 60, total % 60);
}

}  // namespace trainer
