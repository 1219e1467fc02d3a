// SPDX-License-Identifier: Apache-2.0
//
// Charts as SVG, to stand within an HTML page: no script, no style of their own but names of
// classes (html_style.h), sizes of a viewBox that scales.  Pure.
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

}  // namespace bench
