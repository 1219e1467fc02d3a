// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>

#include "bench/report/charts/printable.h"
#include "bench/report/charts/svg_chart.h"
#include "bench/report/sections.h"

namespace bench {
namespace {

constexpr double kMilliseconds = 1e3;
// Bars that one chart has; the table has all ranks.
constexpr std::size_t kMaxBars = 64;

std::string Milliseconds(double seconds) { return FourDigits(seconds * kMilliseconds); }

// Points of a curve, so that all curves together stay readable.
std::size_t PointsFor(std::size_t curves) {
  constexpr std::size_t kAll = 2000;
  constexpr std::size_t kMax = 200;
  constexpr std::size_t kFewest = 20;
  return std::clamp(kAll / std::max<std::size_t>(1, curves), kFewest, kMax);
}

// What a stretch of the curve shows: its mean, and the least and the most of it.
using PointOf = ChartPoint (*)(const SeriesPoint&);

ChartPoint SpeedPoint(const SeriesPoint& point) {
  return {point.x, 1 / point.mean, 1 / point.max, 1 / point.min};
}
ChartPoint PlainPoint(const SeriesPoint& point) {
  return {point.x, point.mean, point.min, point.max};
}

struct Curve {
  std::string name;
  const ThinnedSeries* series;
};

Figure CurveFigure(const std::string& id, const std::string& title, const std::string& y_label,
                   const std::vector<Curve>& curves, PointOf point_of) {
  LineChart chart = {"step", y_label, true, false, {}};
  Table table = {title,
                 {{"run", false}, {"step", true}, {"mean", true}, {"min", true}, {"max", true}},
                 {},
                 /*is_short=*/false};
  const std::size_t shown = std::min(curves.size(), kMaxSeries);
  for (std::size_t i = 0; i < shown; ++i) {
    LineSeries series = {curves[i].name, {}, false};
    for (const SeriesPoint& stretch : Thinned(curves[i].series->points(), PointsFor(shown))) {
      const ChartPoint point = point_of(stretch);
      series.points.push_back(point);
      table.rows.push_back({series.name, fmt::format("{:.0f}", point.x), FourDigits(point.y),
                            FourDigits(point.low), FourDigits(point.high)});
    }
    chart.series.push_back(std::move(series));
  }
  std::string whole_title = title;
  if (shown < curves.size()) {
    whole_title += fmt::format(" (the first {} of {} runs)", shown, curves.size());
  }
  return {id, whole_title, std::move(chart), std::move(table)};
}

std::vector<std::string> RankCells(int rank, const RankTimes& times) {
  std::vector<std::string> cells = {std::to_string(rank), times.host.empty() ? "-" : times.host,
                                    times.steps == 0 ? "-" : std::to_string(times.steps),
                                    Milliseconds(times.step)};
  for (const double phase : times.phases) cells.push_back(Milliseconds(phase));
  return cells;
}

Figure BreakdownFigure(const RunRecord& run, const std::string& name, std::size_t number) {
  BarChart chart;
  chart.x_label = "ms";
  chart.part_names.assign(kPhaseNames.begin(), kPhaseNames.end());
  Table table;
  table.columns = {{"rank", true}, {"host", false}, {"steps", true}, {"step, ms", true}};
  for (const char* phase : kPhaseNames) {
    table.columns.push_back({std::string(phase) + ", ms", true});
  }
  for (const auto& [rank, times] : run.times) {
    table.rows.push_back(RankCells(rank, times));
    if (chart.rows.size() == kMaxBars) continue;
    BarRow row = {"rank " + std::to_string(rank), {}, Milliseconds(times.step)};
    for (const double phase : times.phases) row.parts.push_back(phase * kMilliseconds);
    chart.rows.push_back(std::move(row));
  }
  std::string title = name + ": phases of a step by rank, from " + run.times_from;
  if (chart.rows.size() < run.times.size()) {
    title += fmt::format(" (the first {} of {} ranks)", chart.rows.size(), run.times.size());
  }
  table.caption = title;
  return {fmt::format("breakdown-{}", number), title, std::move(chart), std::move(table)};
}

}  // namespace

std::string CellOf(const std::optional<double>& value) { return value ? FourDigits(*value) : "-"; }

std::string MarginCell(const std::optional<Estimate>& estimate) {
  return estimate && estimate->margin ? "\xC2\xB1 " + FourDigits(*estimate->margin) : "-";
}

Section SpeedSection(const ReportModel& model) {
  Section section = {
      "speed",
      "Speed",
      "images/s: steps over the sum of 1/imgs_per_sec, which is images over the time "
      "of these steps. \xC2\xB1: half of the 95 % confidence interval, from the means "
      "of 20 stretches of the run. The program's own figure is its median step.",
      {},
      {}};
  Table speeds = {"Images per second, all ranks together",
                  {{"run", false},
                   {"ranks", true},
                   {"images in a step", true},
                   {"steps", true},
                   {"images/s", true},
                   {"\xC2\xB1", true},
                   {"the program's own", true}},
                  {}};
  Table steps = {"Time of a step, ms",
                 {{"run", false},
                  {"mean", true},
                  {"sd", true},
                  {"min", true},
                  {"median", true},
                  {"95 %", true},
                  {"99 %", true},
                  {"max", true}},
                 {}};
  for (std::size_t i = 0; i < model.runs.size(); ++i) {
    const RunRecord& run = model.runs[i];
    const RunStats& figures = model.figures[i];
    std::optional<double> speed;
    if (figures.images_per_second) speed = figures.images_per_second->value;
    speeds.rows.push_back({figures.name, run.ranks == 0 ? "-" : std::to_string(run.ranks),
                           figures.global_batch ? std::to_string(*figures.global_batch) : "-",
                           std::to_string(figures.steps), CellOf(speed),
                           MarginCell(figures.images_per_second), CellOf(run.train_throughput)});
    if (!figures.step) continue;
    const StepSeconds& step = *figures.step;
    steps.rows.push_back({figures.name, Milliseconds(step.mean), Milliseconds(step.sd),
                          Milliseconds(step.min), Milliseconds(step.median), Milliseconds(step.p95),
                          Milliseconds(step.p99), Milliseconds(step.max)});
  }
  section.tables.push_back(std::move(speeds));
  if (!steps.rows.empty()) section.tables.push_back(std::move(steps));
  return section;
}

Section CurveSection(const ReportModel& model) {
  Section section = {
      "curves",
      "Throughput and loss",
      "Each point is the mean of a stretch of steps, the band its least and its most. "
      "The loss is cross-entropy, with label smoothing.",
      {},
      {}};
  std::vector<Curve> speeds;
  std::vector<Curve> losses;
  Table table = {"Loss",
                 {{"run", false},
                  {"last step", true},
                  {"cross-entropy", true},
                  {"steps without a finite one", true}},
                 {}};
  for (std::size_t i = 0; i < model.runs.size(); ++i) {
    const RunMeasures& measures = model.runs[i].measures;
    const std::string& name = model.figures[i].name;
    if (measures.last_step < 0) continue;
    speeds.push_back({name, &measures.seconds_per_image});
    if (measures.cross_entropy.count() > 0) losses.push_back({name, &measures.cross_entropy});
    table.rows.push_back({name, std::to_string(measures.last_step),
                          CellOf(measures.last_cross_entropy),
                          std::to_string(measures.strange_losses)});
  }
  if (speeds.empty()) return section;
  section.tables.push_back(std::move(table));
  section.figures.push_back(
      CurveFigure("throughput", "Throughput by step", "images/s", speeds, SpeedPoint));
  if (!losses.empty()) {
    section.figures.push_back(
        CurveFigure("loss", "Loss by step", "cross-entropy", losses, PlainPoint));
  }
  return section;
}

Section BreakdownSection(const ReportModel& model) {
  Section section = {"breakdown",
                     "Where the time of a step goes",
                     "Means over the steps of the trace, or over the steps before the last writing "
                     "of the files for Prometheus. Behind each bar: the whole step, which is more "
                     "than its phases where the loop does something else between them.",
                     {},
                     {}};
  for (std::size_t i = 0; i < model.runs.size(); ++i) {
    if (model.runs[i].times.empty()) continue;
    section.figures.push_back(BreakdownFigure(model.runs[i], model.figures[i].name, i + 1));
  }
  return section;
}

}  // namespace bench
