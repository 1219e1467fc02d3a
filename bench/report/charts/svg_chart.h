// SPDX-License-Identifier: Apache-2.0
//
// Charts as SVG, to stand within an HTML page: no script, no style of their own but names of
// classes (views.cc), sizes of a viewBox that scales.  Pure.
//
// Every mark has a class by which a test finds it: "line" for the path of a series, "point", "band"
// for what lies between low and high, "bar" for a part of a bar, "interval" for a confidence
// interval.  A part of size 0 has no bar.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/report/charts/document.h"

namespace bench {

// As `<` is in HTML and SVG, in texts and in quoted attributes; of UTF-8 that is printable.
std::string Escaped(const std::string& text);

// Colour and dash of the series or part of this number: 24 can be told apart.
inline constexpr std::size_t kMaxSeries = 24;
std::string SeriesClass(std::size_t number);

// An <svg> with `title` and `id` for those who do not see it.
std::string SvgOf(const Chart& chart, const std::string& id, const std::string& title);

// The names of the marks beside their looks, as a list; "" where there is one alone.
std::string LegendOf(const Chart& chart);

// The axis of a chart: from where to where, and its ticks at round numbers.  Pure.

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
