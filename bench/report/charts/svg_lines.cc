// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "bench/report/charts/svg_chart.h"
#include "bench/report/charts/svg_parts.h"

namespace bench {
namespace {

constexpr double kHeight = 280;
constexpr int kXTicks = 5;
constexpr int kYTicks = 5;
// With more, a point is a part of its line.
constexpr std::size_t kMaxShownPoints = 40;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void Add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool is_empty() const { return low > high; }
};

struct Frame {
  PlotArea area;
  Axis x;
  Axis y;

  double X(double value) const { return area.left + x.Place(value, area.width); }
  double Y(double value) const { return area.bottom() - y.Place(value, area.height); }
};

Frame FrameOf(const LineChart& chart) {
  Range x;
  Range y;
  for (const LineSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      x.Add(point.x);
      for (const double value : {point.y, point.low, point.high}) y.Add(value);
    }
  }
  if (x.is_empty()) x = {0, 1};
  if (y.is_empty()) y = {0, 1};
  if (chart.y_from_zero) y.Add(0);
  constexpr double kTop = 30;
  constexpr double kLeft = 56;
  constexpr double kRight = 20;
  constexpr double kBelow = 48;
  return {{kLeft, kTop, kChartWidth - kLeft - kRight, kHeight - kTop - kBelow},
          RoundAxis(x.low, x.high, kXTicks, chart.x_is_whole),
          RoundAxis(y.low, y.high, kYTicks)};
}

std::string PathOf(const Frame& frame, const LineSeries& series) {
  std::string path;
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const ChartPoint& point = series.points[i];
    const bool continues = i > 0 && point.x > series.points[i - 1].x;
    path += fmt::format("{}{} {}", continues ? "L" : "M", Length(frame.X(point.x)),
                        Length(frame.Y(point.y)));
  }
  return path;
}

// Around one part of the line after the other.
std::string BandOf(const Frame& frame, const LineSeries& series) {
  const auto has_width = [](const ChartPoint& point) { return point.low < point.high; };
  if (std::none_of(series.points.begin(), series.points.end(), has_width)) return "";
  std::string path;
  std::size_t begin = 0;
  while (begin < series.points.size()) {
    std::size_t end = begin + 1;
    while (end < series.points.size() && series.points[end].x > series.points[end - 1].x) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      const ChartPoint& point = series.points[i];
      path += fmt::format("{}{} {}", i == begin ? "M" : "L", Length(frame.X(point.x)),
                          Length(frame.Y(point.high)));
    }
    for (std::size_t i = end; i-- > begin;) {
      const ChartPoint& point = series.points[i];
      path += fmt::format("L{} {}", Length(frame.X(point.x)), Length(frame.Y(point.low)));
    }
    path += "Z";
    begin = end;
  }
  return path;
}

std::string YAxis(const Frame& frame, const std::string& label) {
  constexpr double kGap = 6;
  constexpr double kMiddleOfLetter = 5;
  std::string text;
  for (const double tick : frame.y.Ticks()) {
    const double y = frame.Y(tick);
    text += fmt::format("<path class=\"grid\" d=\"M{} {}H{}\"/>\n", Length(frame.area.left),
                        Length(y), Length(frame.area.right()));
    text += SvgText(frame.area.left - kGap, y + kMiddleOfLetter, "end", TickText(frame.y, tick));
  }
  constexpr double kLabelLeft = 4;
  constexpr double kLabelTop = 15;
  return text + SvgText(kLabelLeft, kLabelTop, "start", label);
}

std::string PointsOf(const Frame& frame, const LineSeries& series, const std::string& classes,
                     const LineChart& chart) {
  std::string text;
  if (series.points.size() > kMaxShownPoints || series.is_ideal) return text;
  for (const ChartPoint& point : series.points) {
    text += fmt::format("<circle class=\"point {}\" cx=\"{}\" cy=\"{}\" r=\"3.5\">{}</circle>\n",
                        classes, Length(frame.X(point.x)), Length(frame.Y(point.y)),
                        SvgTitle(fmt::format("{}: {:g} {}, {:.6g} {}", series.name, point.x,
                                             chart.x_label, point.y, chart.y_label)));
  }
  return text;
}

}  // namespace

double HeightOf(const LineChart& /*chart*/) { return kHeight; }

std::string SvgLines(const LineChart& chart) {
  const Frame frame = FrameOf(chart);
  std::string text = SvgXAxis(frame.area, frame.x, chart.x_label) + YAxis(frame, chart.y_label);
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const std::string band = BandOf(frame, chart.series[i]);
    if (band.empty()) continue;
    text += fmt::format("<path class=\"band {}\" d=\"{}\"/>\n", SeriesClass(i), band);
  }
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const LineSeries& series = chart.series[i];
    if (series.points.empty()) continue;
    const std::string classes = series.is_ideal ? "ideal" : SeriesClass(i);
    text += fmt::format("<path class=\"line {}\" d=\"{}\">{}</path>\n", classes,
                        PathOf(frame, series), SvgTitle(series.name));
    text += PointsOf(frame, series, classes, chart);
  }
  return text;
}

}  // namespace bench
