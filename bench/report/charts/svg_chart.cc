// SPDX-License-Identifier: Apache-2.0

#include "bench/report/charts/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "bench/report/charts/printable.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

constexpr std::size_t kColors = 8;
constexpr double kLarge = 1e4;

// Lengths are in units of the viewBox, in which a letter of the text is kLetterWidth wide at most.
constexpr double kChartWidth = 420;
constexpr double kLetterWidth = 8;
constexpr double kGap = 6;
constexpr double kMiddleOfLetter = 5;
constexpr double kBelow = 48;  // of the area: ticks and label

// The smallest of 1, 2, 5, 10, 20, ... that is not below `size`.
double RoundStep(double size) {
  const double power = std::pow(10.0, std::floor(std::log10(size)));
  // What is missing at the last digit is no reason to take the next one.
  constexpr double kSlack = 1 - 1e-9;
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power >= size * kSlack) return step * power;
  }
  return 10 * power;
}

int DigitsOf(double step) {
  constexpr double kMaxDigits = 12;
  return static_cast<int>(std::clamp(-std::floor(std::log10(step) + 1e-9), 0.0, kMaxDigits));
}

// Where marks may be.
struct PlotArea {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

// What stands in an <svg>, and how high that is.
struct Drawing {
  double height = 0;
  std::string marks;
};

std::string Length(double length) { return fmt::format("{:.2f}", length); }

// `anchor` is start, middle or end.  The text need not be printable.
std::string SvgText(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", Length(x), Length(y),
                     anchor, Escaped(text));
}

// What a mark shows to who points at it.
std::string SvgTitle(const std::string& text) { return "<title>" + Escaped(text) + "</title>"; }

std::string SvgPoint(const std::string& classes, double x, double y, double radius,
                     const std::string& title) {
  return fmt::format("<circle class=\"point {}\" cx=\"{}\" cy=\"{}\" r=\"{}\">{}</circle>\n",
                     classes, Length(x), Length(y), radius, SvgTitle(title));
}

// Lines, ticks and label of an axis below the area.
std::string SvgXAxis(const PlotArea& area, const Axis& axis, const std::string& label) {
  constexpr double kTickText = 18;
  constexpr double kLabel = 38;
  std::string text;
  for (const double tick : axis.Ticks()) {
    const double x = area.left + axis.Place(tick, area.width);
    text += fmt::format("<path class=\"grid\" d=\"M{} {}V{}\"/>\n", Length(x), Length(area.top),
                        Length(area.bottom()));
    text += SvgText(x, area.bottom() + kTickText, "middle", TickText(axis, tick));
  }
  return text + SvgText(area.left + area.width / 2, area.bottom() + kLabel, "middle", label);
}

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
  // "M12.00 34.00" of `command` M.
  std::string Path(char command, double at_x, double at_y) const {
    return fmt::format("{}{} {}", command, Length(X(at_x)), Length(Y(at_y)));
  }
};

constexpr double kLinesHeight = 280;

Frame FrameOf(const LineChart& chart) {
  constexpr int kTicks = 5;
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
  return {{kLeft, kTop, kChartWidth - kLeft - kRight, kLinesHeight - kTop - kBelow},
          RoundAxis(x.low, x.high, kTicks, chart.x_is_whole),
          RoundAxis(y.low, y.high, kTicks)};
}

// Whether the line goes on to point `i`, and does not begin anew there.
bool Continues(const LineSeries& series, std::size_t i) {
  return i > 0 && series.points[i].x > series.points[i - 1].x;
}

std::string PathOf(const Frame& frame, const LineSeries& series) {
  std::string path;
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    path += frame.Path(Continues(series, i) ? 'L' : 'M', series.points[i].x, series.points[i].y);
  }
  return path;
}

// Around one part of the line after the other.
std::string BandOf(const Frame& frame, const LineSeries& series) {
  const std::vector<ChartPoint>& points = series.points;
  const auto has_width = [](const ChartPoint& point) { return point.low < point.high; };
  if (std::ranges::none_of(points, has_width)) return "";
  std::string path;
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin + 1;
    while (end < points.size() && Continues(series, end)) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      path += frame.Path(i == begin ? 'M' : 'L', points[i].x, points[i].high);
    }
    for (std::size_t i = end; i-- > begin;) path += frame.Path('L', points[i].x, points[i].low);
    path += "Z";
    begin = end;
  }
  return path;
}

std::string YAxis(const Frame& frame, const std::string& label) {
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
  constexpr std::size_t kMaxShown = 40;  // with more, a point is a part of its line
  std::string text;
  if (series.points.size() > kMaxShown || series.is_ideal) return text;
  for (const ChartPoint& point : series.points) {
    text += SvgPoint(classes, frame.X(point.x), frame.Y(point.y), 3.5,
                     fmt::format("{}: {:g} {}, {:.6g} {}", series.name, point.x, chart.x_label,
                                 point.y, chart.y_label));
  }
  return text;
}

Drawing Draw(const LineChart& chart) {
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
  return {kLinesHeight, text};
}

// Charts whose rows lie one below the other, each with its name: bars and intervals.
constexpr double kRow = 26;
constexpr double kRowsTop = 8;
constexpr int kRowTicks = 4;
constexpr std::size_t kLongestName = 20;

// Room for the longest name on the left and, on the right, of so many letters.
template <typename Row>
PlotArea AreaFor(const std::vector<Row>& rows, std::size_t letters_right) {
  std::size_t longest = 3;
  for (const Row& row : rows) longest = std::max(longest, CountChars(Printable(row.name)));
  const auto room = [](std::size_t letters) {
    return static_cast<double>(letters) * kLetterWidth + 2 * kGap;
  };
  const double left = room(std::min(longest, kLongestName));
  // Half of the last tick's text at least.
  const double right = room(std::max<std::size_t>(2, letters_right));
  return {left, kRowsTop, kChartWidth - left - right, kRow * static_cast<double>(rows.size())};
}

double MiddleOf(const PlotArea& area, std::size_t row) {
  return area.top + kRow * (static_cast<double>(row) + 0.5);
}

std::string NameText(const PlotArea& area, std::size_t row, const std::string& name) {
  return SvgText(area.left - kGap, MiddleOf(area, row) + kMiddleOfLetter, "end",
                 Shortened(Printable(name), kLongestName));
}

Drawing Draw(const BarChart& chart) {
  constexpr double kBar = 16;
  double max = 0;
  std::size_t letters_right = 0;
  for (const BarRow& row : chart.rows) {
    max = std::max(max, std::accumulate(row.parts.begin(), row.parts.end(), 0.0));
    letters_right = std::max(letters_right, CountChars(row.text));
  }
  const PlotArea area = AreaFor(chart.rows, letters_right);
  const Axis axis = RoundAxis(0, max, kRowTicks);
  std::string text = SvgXAxis(area, axis, chart.x_label);
  for (std::size_t i = 0; i < chart.rows.size(); ++i) {
    const BarRow& row = chart.rows[i];
    text += NameText(area, i, row.name);
    double from = 0;
    for (std::size_t part = 0; part < row.parts.size(); ++part) {
      const double to = from + row.parts[part];
      if (row.parts[part] > 0) {
        text += fmt::format(
            "<rect class=\"bar {}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">{}</rect>\n",
            SeriesClass(part), Length(area.left + axis.Place(from, area.width)),
            Length(MiddleOf(area, i) - kBar / 2),
            Length(axis.Place(to, area.width) - axis.Place(from, area.width)), Length(kBar),
            SvgTitle(fmt::format("{}, {}: {:.6g} {}", row.name, chart.part_names[part],
                                 row.parts[part], chart.x_label)));
      }
      from = to;
    }
    text += SvgText(area.left + axis.Place(from, area.width) + kGap,
                    MiddleOf(area, i) + kMiddleOfLetter, "start", row.text);
  }
  return {area.bottom() + kBelow, text};
}

Drawing Draw(const IntervalChart& chart) {
  double low = 0;
  double high = 0;
  for (const IntervalRow& row : chart.rows) {
    low = std::min(low, row.value - row.margin);
    high = std::max(high, row.value + row.margin);
  }
  const PlotArea area = AreaFor(chart.rows, 0);
  const Axis axis = RoundAxis(low, high, kRowTicks);
  const auto place = [&](double value) { return area.left + axis.Place(value, area.width); };
  std::string text = SvgXAxis(area, axis, chart.x_label);
  text += fmt::format("<path class=\"zero\" d=\"M{} {}V{}\"/>\n", Length(place(0)),
                      Length(area.top), Length(area.bottom()));
  for (std::size_t i = 0; i < chart.rows.size(); ++i) {
    const IntervalRow& row = chart.rows[i];
    const double y = MiddleOf(area, i);
    text += NameText(area, i, row.name);
    if (row.margin > 0) {
      constexpr double kEnd = 5;
      text +=
          fmt::format("<path class=\"interval s0\" d=\"M{0} {2}V{3}M{0} {4}H{1}M{1} {2}V{3}\"/>\n",
                      Length(place(row.value - row.margin)), Length(place(row.value + row.margin)),
                      Length(y - kEnd), Length(y + kEnd), Length(y));
    }
    text += SvgPoint("s0", place(row.value), y, 4.5,
                     fmt::format("{}: {:+.3g} {}", row.name, row.value, chart.x_label));
  }
  return {area.bottom() + kBelow, text};
}

std::string LegendEntry(const std::string& classes, const std::string& name) {
  return fmt::format(
      "<li><svg class=\"key\" viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path class=\"key-line "
      "{}\" d=\"M1 5H27\"/></svg> {}</li>\n",
      classes, Escaped(name));
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

std::string Escaped(const std::string& text) {
  constexpr std::array<std::pair<char, const char*>, 5> kEntities = {
      {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}}};
  std::string escaped;
  for (const char letter : Printable(text)) {
    const auto* const entity =
        std::ranges::find(kEntities, letter, &std::pair<char, const char*>::first);
    if (entity == kEntities.end()) {
      escaped += letter;
    } else {
      escaped += entity->second;
    }
  }
  return escaped;
}

std::string SeriesClass(std::size_t number) {
  return fmt::format("s{} d{}", number % kColors, number / kColors % (kMaxSeries / kColors));
}

std::string SvgOf(const Chart& chart, const std::string& id, const std::string& title) {
  const Drawing drawing = std::visit([](const auto& one) { return Draw(one); }, chart);
  return fmt::format(
             "<svg id=\"{0}\" class=\"chart\" viewBox=\"0 0 {1} {2}\" role=\"img\" "
             "aria-labelledby=\"{0}-title\">\n<title id=\"{0}-title\">{3}</title>\n",
             id, kChartWidth, drawing.height, Escaped(title)) +
         drawing.marks + "</svg>\n";
}

std::string LegendOf(const Chart& chart) {
  std::string entries;
  if (const auto* lines = std::get_if<LineChart>(&chart); lines && lines->series.size() > 1) {
    for (std::size_t i = 0; i < lines->series.size(); ++i) {
      const LineSeries& series = lines->series[i];
      entries += LegendEntry(series.is_ideal ? "ideal" : SeriesClass(i), series.name);
    }
  }
  if (const auto* bars = std::get_if<BarChart>(&chart); bars && bars->part_names.size() > 1) {
    for (std::size_t i = 0; i < bars->part_names.size(); ++i) {
      entries += LegendEntry(SeriesClass(i) + " wide", bars->part_names[i]);
    }
  }
  return entries.empty() ? "" : "<ul class=\"legend\">\n" + entries + "</ul>\n";
}

}  // namespace bench
