// SPDX-License-Identifier: Apache-2.0

#include "bench/report/charts/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "bench/report/charts/printable.h"
#include "bench/report/charts/svg_parts.h"

namespace bench {
namespace {

constexpr std::size_t kColors = 8;

std::string LegendEntry(const std::string& classes, const std::string& name) {
  return fmt::format(
      "<li><svg class=\"key\" viewBox=\"0 0 28 10\" aria-hidden=\"true\"><path class=\"key-line "
      "{}\" d=\"M1 5H27\"/></svg> {}</li>\n",
      classes, Escaped(name));
}

std::string Listed(const std::string& entries) {
  return entries.empty() ? "" : "<ul class=\"legend\">\n" + entries + "</ul>\n";
}

}  // namespace

std::string Escaped(const std::string& text) {
  constexpr std::array<std::pair<char, const char*>, 5> kEntities = {
      {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}}};
  std::string escaped;
  for (const char letter : Printable(text)) {
    const auto* const entity = std::find_if(kEntities.begin(), kEntities.end(),
                                            [&](const auto& pair) { return pair.first == letter; });
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

std::string Length(double length) { return fmt::format("{:.2f}", length); }

std::string SvgHead(const std::string& id, const std::string& title, double height) {
  return fmt::format(
      "<svg id=\"{}\" class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-labelledby=\"{}-title\">\n<title id=\"{}-title\">{}</title>\n",
      id, kChartWidth, height, id, id, Escaped(title));
}

std::string SvgText(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", Length(x), Length(y),
                     anchor, Escaped(text));
}

std::string SvgTitle(const std::string& text) { return "<title>" + Escaped(text) + "</title>"; }

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

std::string SvgOf(const Chart& chart, const std::string& id, const std::string& title) {
  struct {
    double operator()(const LineChart& lines) const { return HeightOf(lines); }
    double operator()(const BarChart& bars) const { return HeightOf(bars); }
    double operator()(const IntervalChart& intervals) const { return HeightOf(intervals); }
  } height_of;
  struct {
    std::string operator()(const LineChart& lines) const { return SvgLines(lines); }
    std::string operator()(const BarChart& bars) const { return SvgBars(bars); }
    std::string operator()(const IntervalChart& rows) const { return SvgIntervals(rows); }
  } inside_of;
  return SvgHead(id, title, std::visit(height_of, chart)) + std::visit(inside_of, chart) +
         "</svg>\n";
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
  return Listed(entries);
}

}  // namespace bench
