// SPDX-License-Identifier: Apache-2.0
//
// What the charts have in common.  Lengths are in units of the viewBox, in which a letter of the
// text is kLetterWidth wide at most.  Pure.

#pragma once

#include <string>

#include "bench/report/charts/axis.h"
#include "bench/report/charts/document.h"

namespace bench {

inline constexpr double kChartWidth = 420;
inline constexpr double kLetterWidth = 8;

// Where marks may be.
struct PlotArea {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

// Two digits behind the point.
std::string Length(double length);

std::string SvgHead(const std::string& id, const std::string& title, double height);

// `anchor` is start, middle or end.  The text need not be printable.
std::string SvgText(double x, double y, const char* anchor, const std::string& text);

// A text of a class of its own, which a mark shows to who points at it.
std::string SvgTitle(const std::string& text);

// Lines, ticks and label of an axis below the area.
std::string SvgXAxis(const PlotArea& area, const Axis& axis, const std::string& label);

std::string SvgLines(const LineChart& chart);          // what stands in the <svg>
std::string SvgBars(const BarChart& chart);            // the same
std::string SvgIntervals(const IntervalChart& chart);  // the same
double HeightOf(const LineChart& chart);
double HeightOf(const BarChart& chart);
double HeightOf(const IntervalChart& chart);

}  // namespace bench
