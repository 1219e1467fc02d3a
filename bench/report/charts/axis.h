// SPDX-License-Identifier: Apache-2.0
//
// The axis of a chart: from where to where, and its ticks at round numbers.  Pure.

#pragma once

#include <string>
#include <vector>

namespace bench {

struct Axis {
  double low = 0;
  double high = 1;
  double step = 1;

  // `length` of the axis away from its start for `value`.
  double Place(double value, double length) const { return (value - low) / (high - low) * length; }
  std::vector<double> Ticks() const;
};

// About `ticks` steps of 1, 2 or 5 times a power of ten, around all values from low to high; a
// range of one value is widened.  REQUIRES: finite, low <= high, ticks > 0.
Axis RoundAxis(double low, double high, int ticks, bool is_whole = false);

// 0.25, 12, 3400 as "0.25", "12", "3.4k", with as many digits as the steps of the axis need.
std::string TickText(const Axis& axis, double tick);

}  // namespace bench
