// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "bench/report/charts/printable.h"
#include "bench/report/charts/svg_chart.h"
#include "bench/report/sections.h"

namespace bench {
namespace {

// Rows that one chart has; the table has all.
constexpr std::size_t kMaxRows = 64;

std::string Percent(double share) { return fmt::format("{:.1f} %", share * kPercent); }

std::string NodesText(const ReportModel& model, const RunGroup& group) {
  const std::string nodes = SettingOf(model.runs[group.runs.front()].environment, "nodes");
  return nodes.empty() ? "-" : nodes;
}

ChartPoint PointOfSpeed(const ScalingPoint& point) {
  const Estimate& speed = point.images_per_second;
  const double margin = speed.margin.value_or(0);
  return {static_cast<double>(point.ranks), speed.value, speed.value - margin,
          speed.value + margin};
}

ChartPoint PointWithoutMargin(double x, double y) { return {x, y, y, y}; }

bool IsPredicted(const ReportModel& model) {
  return std::ranges::any_of(model.scalings, [](const Scaling& scaling) {
    return scaling.points.front().predicted.has_value();
  });
}

Table ScalingTable(const ReportModel& model) {
  Table table = {"Speed and efficiency by ranks",
                 {{"runs", false},
                  {"ranks", true},
                  {"nodes", true},
                  {"number of runs", true},
                  {"images/s", true},
                  {"\xC2\xB1", true},
                  {"ideal", true},
                  {"efficiency", true}},
                 {}};
  const bool is_predicted = IsPredicted(model);
  if (is_predicted) table.columns.push_back({"predicted", true});
  for (const Scaling& scaling : model.scalings) {
    for (const ScalingPoint& point : scaling.points) {
      const RunGroup& group = model.groups[point.group];
      table.rows.push_back({scaling.name, std::to_string(point.ranks), NodesText(model, group),
                            std::to_string(group.runs.size()),
                            FourDigits(point.images_per_second.value),
                            MarginCell(point.images_per_second), FourDigits(point.ideal),
                            Percent(point.efficiency)});
      if (is_predicted) {
        table.rows.back().push_back(point.predicted ? FourDigits(*point.predicted) : "-");
      }
    }
  }
  return table;
}

std::string SignedPercent(double percent) { return fmt::format("{:+.2f} %", percent); }

// Whether 0 is outside of the interval.
std::string Verdict(const Estimate& percent) {
  if (!percent.margin) return "unknown";
  if (percent.value > *percent.margin) return "faster";
  return percent.value < -*percent.margin ? "slower" : "within the scatter";
}

// `names` of runs or of groups.
Figure DifferenceFigure(const std::string& id, const std::string& title,
                        const std::vector<std::string>& names,
                        const std::vector<Difference>& differences) {
  IntervalChart chart = {"% of images/s", {}};
  Table table = {title,
                 {{"", false},
                  {"beside", false},
                  {"images/s", true},
                  {"difference", true},
                  {"\xC2\xB1", true},
                  {"", false}},
                 {}};
  for (const Difference& difference : differences) {
    const Estimate& percent = difference.percent;
    if (chart.rows.size() < kMaxRows) {
      chart.rows.push_back({names[difference.b], percent.value, percent.margin.value_or(0)});
    }
    table.rows.push_back({names[difference.b], names[difference.a],
                          (difference.images_per_second.value < 0 ? "-" : "+") +
                              FourDigits(std::abs(difference.images_per_second.value)),
                          SignedPercent(percent.value),
                          percent.margin ? fmt::format("\xC2\xB1 {:.2f} %", *percent.margin) : "-",
                          Verdict(percent)});
  }
  return {id, title, std::move(chart), std::move(table)};
}

Table DifferingTable(const ReportModel& model) {
  Table table = {"What is not the same in all runs", {{"", false}}, {}};
  for (const RunStats& figures : model.figures) table.columns.push_back({figures.name, false});
  for (const DifferingSetting& setting : model.differing) {
    std::vector<std::string> row = {setting.name};
    for (const std::string& value : setting.values) row.push_back(value.empty() ? "-" : value);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

Section ScalingSection(const ReportModel& model) {
  Section section = {"scaling",
                     "Scaling",
                     "Runs that differ in ranks and nodes alone: each rank has as many images. "
                     "Ideal: images/s of the fewest ranks, times ranks over those. Efficiency: "
                     "images/s over ideal. Of several runs alike it is their mean, and "
                     "\xC2\xB1 half of its 95 % confidence interval over the runs.",
                     {},
                     {}};
  if (model.scalings.empty()) return section;
  if (IsPredicted(model)) {
    section.note +=
        " Predicted: from the links of the site and the measured speed of one GPU, one node and "
        "two.";
  }
  LineChart speed = {"ranks", "images/s", true, true, {}};
  LineChart efficiency = {"ranks", "efficiency, %", true, true, {}};
  const std::size_t shown = std::min(model.scalings.size(), kMaxSeries);
  for (std::size_t i = 0; i < shown; ++i) {
    const Scaling& scaling = model.scalings[i];
    LineSeries speeds = {scaling.name, {}, false};
    LineSeries shares = {scaling.name, {}, false};
    for (const ScalingPoint& point : scaling.points) {
      speeds.points.push_back(PointOfSpeed(point));
      shares.points.push_back(
          PointWithoutMargin(static_cast<double>(point.ranks), point.efficiency * kPercent));
    }
    speed.series.push_back(std::move(speeds));
    efficiency.series.push_back(std::move(shares));
  }
  for (std::size_t i = 0; i < shown; ++i) {
    const std::vector<ScalingPoint>& points = model.scalings[i].points;
    LineSeries ideal = {shown == 1 ? "ideal" : model.scalings[i].name + ", ideal", {}, true};
    LineSeries whole = {ideal.name, {}, true};
    for (const ScalingPoint& point : {points.front(), points.back()}) {
      ideal.points.push_back(PointWithoutMargin(static_cast<double>(point.ranks), point.ideal));
      whole.points.push_back(PointWithoutMargin(static_cast<double>(point.ranks), kPercent));
    }
    speed.series.push_back(std::move(ideal));
    if (i == 0) efficiency.series.push_back({"ideal", std::move(whole.points), true});
  }
  for (std::size_t i = 0; i < shown; ++i) {
    const Scaling& scaling = model.scalings[i];
    if (!scaling.points.front().predicted) continue;
    LineSeries predicted = {shown == 1 ? "predicted" : scaling.name + ", predicted", {}, true};
    for (const ScalingPoint& point : scaling.points) {
      predicted.points.push_back(
          PointWithoutMargin(static_cast<double>(point.ranks), *point.predicted));
    }
    speed.series.push_back(std::move(predicted));
  }
  const Table table = ScalingTable(model);
  section.figures.push_back({"scaling", "Images per second by ranks", std::move(speed), table});
  Table same = table;
  same.is_short = false;  // it has been shown
  section.figures.push_back(
      {"efficiency", "Efficiency by ranks", std::move(efficiency), std::move(same)});
  return section;
}

Section DifferenceSection(const ReportModel& model) {
  Section section = {
      "differences",
      "Differences",
      "Images/s less that of the baseline. \xC2\xB1: half of the 95 % confidence "
      "interval of the difference (Welch), of runs from the means of 20 stretches of "
      "each, of groups of runs that were made alike from the runs of each. What "
      "changes from one run to the next is in the second alone.",
      {},
      {}};
  if (model.runs.size() < 2) return section;
  std::vector<std::string> run_names;
  std::vector<std::string> group_names;
  for (const RunStats& figures : model.figures) run_names.push_back(figures.name);
  for (const RunGroup& group : model.groups) group_names.push_back(group.name);
  if (!model.group_differences.empty()) {
    section.figures.push_back(DifferenceFigure("group-differences", "Groups beside the baseline",
                                               group_names, model.group_differences));
  }
  if (!model.run_differences.empty()) {
    section.figures.push_back(DifferenceFigure("run-differences", "Runs beside the baseline",
                                               run_names, model.run_differences));
  }
  Table groups = {
      "Groups of runs that were made alike",
      {{"group", false}, {"number of runs", true}, {"images/s", true}, {"\xC2\xB1", true}},
      {}};
  for (const RunGroup& group : model.groups) {
    if (!group.images_per_second) continue;
    groups.rows.push_back({group.name, std::to_string(group.runs.size()),
                           FourDigits(group.images_per_second->value),
                           MarginCell(group.images_per_second)});
  }
  if (!groups.rows.empty()) section.tables.push_back(std::move(groups));
  if (!model.differing.empty()) section.tables.push_back(DifferingTable(model));
  return section;
}

}  // namespace bench
