// SPDX-License-Identifier: Apache-2.0
//
// Charts whose rows lie one below the other, each with its name: bars and intervals.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bench/report/charts/printable.h"
#include "bench/report/charts/svg_chart.h"
#include "bench/report/charts/svg_parts.h"

namespace bench {
namespace {

constexpr double kRow = 26;
constexpr double kBar = 16;
constexpr double kTop = 8;
constexpr double kBelow = 48;
constexpr double kGap = 6;
constexpr double kMiddleOfLetter = 5;
constexpr int kTicks = 4;
constexpr std::size_t kLongestName = 20;

double HeightFor(std::size_t rows) { return kTop + kRow * static_cast<double>(rows) + kBelow; }

// Room for the longest name on the left and, on the right, of so many letters.
PlotArea AreaFor(std::size_t rows, std::size_t longest_name, std::size_t letters_right) {
  const auto room = [](std::size_t letters) { return static_cast<double>(letters) * kLetterWidth; };
  const double left = room(std::clamp<std::size_t>(longest_name, 3, kLongestName)) + 2 * kGap;
  // Half of the last tick's text at least.
  const double right = room(std::max<std::size_t>(2, letters_right)) + 2 * kGap;
  return {left, kTop, kChartWidth - left - right, kRow * static_cast<double>(rows)};
}

double MiddleOf(const PlotArea& area, std::size_t row) {
  return area.top + kRow * (static_cast<double>(row) + 0.5);
}

std::string NameText(const PlotArea& area, std::size_t row, const std::string& name) {
  const std::string printable = Printable(name);
  return SvgText(area.left - kGap, MiddleOf(area, row) + kMiddleOfLetter, "end",
                 Shortened(printable, kLongestName));
}

template <typename Row>
std::size_t LongestName(const std::vector<Row>& rows) {
  std::size_t longest = 0;
  for (const Row& row : rows) longest = std::max(longest, CountChars(Printable(row.name)));
  return longest;
}

double SumOf(const BarRow& row) { return std::accumulate(row.parts.begin(), row.parts.end(), 0.0); }

}  // namespace

double HeightOf(const BarChart& chart) { return HeightFor(chart.rows.size()); }

std::string SvgBars(const BarChart& chart) {
  double max = 0;
  std::size_t letters_right = 0;
  for (const BarRow& row : chart.rows) {
    max = std::max(max, SumOf(row));
    letters_right = std::max(letters_right, CountChars(row.text));
  }
  const PlotArea area = AreaFor(chart.rows.size(), LongestName(chart.rows), letters_right);
  const Axis axis = RoundAxis(0, max, kTicks);
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
  return text;
}

double HeightOf(const IntervalChart& chart) { return HeightFor(chart.rows.size()); }

std::string SvgIntervals(const IntervalChart& chart) {
  double low = 0;
  double high = 0;
  for (const IntervalRow& row : chart.rows) {
    low = std::min(low, row.value - row.margin);
    high = std::max(high, row.value + row.margin);
  }
  const PlotArea area = AreaFor(chart.rows.size(), LongestName(chart.rows), 0);
  const Axis axis = RoundAxis(low, high, kTicks);
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
      const double from = place(row.value - row.margin);
      const double to = place(row.value + row.margin);
      text +=
          fmt::format("<path class=\"interval s0\" d=\"M{0} {2}V{3}M{0} {4}H{1}M{1} {2}V{3}\"/>\n",
                      Length(from), Length(to), Length(y - kEnd), Length(y + kEnd), Length(y));
    }
    text +=
        fmt::format("<circle class=\"point s0\" cx=\"{}\" cy=\"{}\" r=\"4.5\">{}</circle>\n",
                    Length(place(row.value)), Length(y),
                    SvgTitle(fmt::format("{}: {:+.3g} {}", row.name, row.value, chart.x_label)));
  }
  return text;
}

}  // namespace bench
