// SPDX-License-Identifier: Apache-2.0
//
// The wall clock as telemetry takes it, so that tests can set it, and the forms in which times and
// durations are printed.

#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace trainer {

using TimePoint = std::chrono::system_clock::time_point;
using WallClock = std::function<TimePoint()>;

// std::chrono::system_clock::now.
WallClock SystemClock();

double InSeconds(TimePoint::duration duration);

// Seconds since the epoch with `digits` decimals, "1605627653.398838758".
std::string UnixSeconds(TimePoint time, int digits);

// Local time with offset, "2020-11-17T15:40:53+00:00" (ISO 8601).
std::string IsoTime(TimePoint time);

// Local time as Python prints a datetime, "2020-11-17 15:40:53.398838".
std::string PythonDatetime(TimePoint time);

// "0:42:07", "2d 03:04:05"; "?" for what is not known (negative or not finite).
std::string FormatDuration(double seconds);

}  // namespace trainer
