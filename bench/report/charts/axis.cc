// SPDX-License-Identifier: Apache-2.0

#include "bench/report/charts/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "trainer/core/error.h"

namespace bench {
namespace {

constexpr double kLarge = 1e4;

// The smallest of 1, 2, 5, 10, 20, ... that is not below `size`.
double RoundStep(double size) {
  const double power = std::pow(10.0, std::floor(std::log10(size)));
  constexpr std::array<double, 3> kSteps = {1, 2, 5};
  // What is missing at the last digit is no reason to take the next one.
  constexpr double kSlack = 1 - 1e-9;
  for (const double step : kSteps) {
    if (step * power >= size * kSlack) return step * power;
  }
  return 10 * power;
}

int DigitsOf(double step) {
  constexpr double kMaxDigits = 12;
  return static_cast<int>(std::clamp(-std::floor(std::log10(step) + 1e-9), 0.0, kMaxDigits));
}

}  // namespace

std::vector<double> Axis::Ticks() const {
  std::vector<double> ticks;
  const auto count = static_cast<int>(std::round((high - low) / step));
  for (int i = 0; i <= count; ++i) ticks.push_back(low + i * step);
  return ticks;
}

Axis RoundAxis(double low, double high, int ticks, bool is_whole) {
  DDL_CHECK(std::isfinite(low) && std::isfinite(high) && low <= high && ticks > 0);
  constexpr double kShare = 0.1;
  // Narrower than this a double has no steps to tell apart.
  const double narrowest = std::max(std::fabs(low), std::fabs(high)) * 1e-9;
  if (high - low <= narrowest) {
    const double more = high == 0 ? 1 : std::fabs(high) * kShare;
    if (low != 0) low -= more;
    high += more;
  }
  double step = RoundStep((high - low) / ticks);
  if (is_whole) step = std::max(1.0, step);
  return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step, step};
}

std::string TickText(const Axis& axis, double tick) {
  // -0 is 0.
  if (std::fabs(tick) < axis.step / 2) tick = 0;
  if (tick != 0 && std::max(std::fabs(axis.low), std::fabs(axis.high)) >= kLarge) {
    constexpr double kThousand = 1e3;
    return fmt::format("{:.{}f}k", tick / kThousand, DigitsOf(axis.step / kThousand));
  }
  return fmt::format("{:.{}f}", tick, DigitsOf(axis.step));
}

}  // namespace bench
