// SPDX-License-Identifier: Apache-2.0

#include "bench/report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "bench/report/charts/printable.h"
#include "bench/report/charts/svg_chart.h"

namespace bench {
namespace {

constexpr double kMilliseconds = 1e3;
// Bars or intervals that one chart has; the table has all.
constexpr std::size_t kMaxRows = 64;
constexpr std::size_t kMaxPoints = 200;  // of a curve
constexpr char kPlusMinus[] = "\xC2\xB1";
constexpr char kCelsius[] =
    "\xC2\xB0"
    "C";

// Columns of texts, then of numbers.
Table TableOf(const std::string& caption, const std::vector<std::string>& texts,
              const std::vector<std::string>& numbers) {
  Table table = {caption, {}};
  for (const std::string& name : texts) table.columns.push_back({name, false});
  for (const std::string& name : numbers) table.columns.push_back({name, true});
  return table;
}

// Cells: "-" for what is not known.
std::string CellOf(const std::optional<double>& value) { return value ? FourDigits(*value) : "-"; }

std::string MarginCell(const std::optional<Estimate>& estimate) {
  return estimate && estimate->margin ? "\xC2\xB1 " + FourDigits(*estimate->margin) : "-";
}

std::string Milliseconds(double seconds) { return FourDigits(seconds * kMilliseconds); }

// Points of a curve, so that all curves together stay readable.
std::size_t PointsFor(std::size_t curves) {
  constexpr std::size_t kAll = 2000;
  constexpr std::size_t kFewest = 20;
  return std::clamp(kAll / std::max<std::size_t>(1, curves), kFewest, kMaxPoints);
}

// What a stretch of the curve shows: its mean, and the least and the most of it.
using PointOf = ChartPoint (*)(const SeriesPoint&);

ChartPoint SpeedPoint(const SeriesPoint& point) {
  return {point.x, 1 / point.mean, 1 / point.max, 1 / point.min};
}
ChartPoint PlainPoint(const SeriesPoint& point) {
  return {point.x, point.mean, point.min, point.max};
}

// A line of the chart and its rows in the table, where x has so many digits behind the point.
void AddLine(const std::string& name, const std::vector<SeriesPoint>& stretches, PointOf point_of,
             int digits, LineChart& chart, Table& table) {
  LineSeries series = {name};
  for (const SeriesPoint& stretch : stretches) {
    const ChartPoint point = point_of(stretch);
    series.points.push_back(point);
    table.rows.push_back({name, fmt::format("{:.{}f}", point.x, digits), FourDigits(point.y),
                          FourDigits(point.low), FourDigits(point.high)});
  }
  chart.series.push_back(std::move(series));
}

struct Curve {
  std::string name;
  const ThinnedSeries* series;
};

Figure CurveFigure(const std::string& id, const std::string& title, const std::string& y_label,
                   const std::vector<Curve>& curves, PointOf point_of) {
  LineChart chart = {"step", y_label, true, false, {}};
  Table table = TableOf(title, {"run"}, {"step", "mean", "min", "max"});
  table.is_short = false;
  const std::size_t shown = std::min(curves.size(), kMaxSeries);
  for (std::size_t i = 0; i < shown; ++i) {
    AddLine(curves[i].name, Thinned(curves[i].series->points(), PointsFor(shown)), point_of, 0,
            chart, table);
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
    if (chart.rows.size() == kMaxRows) continue;
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

Section SpeedSection(const ReportModel& model) {
  Section section = {
      "speed", "Speed",
      "images/s: steps over the sum of 1/imgs_per_sec, which is images over the time "
      "of these steps. \xC2\xB1: half of the 95 % confidence interval, from the means "
      "of 20 stretches of the run. The program's own figure is its median step."};
  Table speeds =
      TableOf("Images per second, all ranks together", {"run"},
              {"ranks", "images in a step", "steps", "images/s", kPlusMinus, "the program's own"});
  Table steps = TableOf("Time of a step, ms", {"run"},
                        {"mean", "sd", "min", "median", "95 %", "99 %", "max"});
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
      "curves", "Throughput and loss",
      "Each point is the mean of a stretch of steps, the band its least and its most. "
      "The loss is cross-entropy, with label smoothing."};
  std::vector<Curve> speeds;
  std::vector<Curve> losses;
  Table table =
      TableOf("Loss", {"run"}, {"last step", "cross-entropy", "steps without a finite one"});
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
  Section section = {"breakdown", "Where the time of a step goes",
                     "Means over the steps of the trace, or over the steps before the last writing "
                     "of the files for Prometheus. Behind each bar: the whole step, which is more "
                     "than its phases where the loop does something else between them."};
  for (std::size_t i = 0; i < model.runs.size(); ++i) {
    if (model.runs[i].times.empty()) continue;
    section.figures.push_back(BreakdownFigure(model.runs[i], model.figures[i].name, i + 1));
  }
  return section;
}

struct Quantity {
  const char* id;
  const char* title;
  const char* unit;
  ThinnedSeries GpuSamples::*series;
};

constexpr std::array<Quantity, 4> kQuantities = {
    {{"sm-clock", "SM clock", "MHz", &GpuSamples::sm_clock},
     {"memory-clock", "memory clock", "MHz", &GpuSamples::memory_clock},
     {"power", "power", "W", &GpuSamples::power},
     {"temperature", "temperature", kCelsius, &GpuSamples::temperature}}};

// One quantity of all GPUs of a run; without a series when it was not sampled.
Figure QuantityFigure(const RunRecord& run, const std::string& name, std::size_t number,
                      const Quantity& quantity) {
  const std::string title = name + ": " + quantity.title + " by GPU";
  LineChart chart = {"s", quantity.unit, false, false, {}};
  Table table = TableOf(title, {"GPU"}, {"s", "mean", "min", "max"});
  table.is_short = false;
  for (const GpuSamples& gpu : run.gpus) {
    const ThinnedSeries& sampled = gpu.*quantity.series;
    if (sampled.count() == 0 || chart.series.size() == kMaxSeries) continue;
    AddLine(gpu.name, Thinned(sampled.points(), kMaxPoints), PlainPoint, 3, chart, table);
  }
  return {fmt::format("{}-{}", quantity.id, number), title, std::move(chart), std::move(table)};
}

// "1380 (1200 to 1530)"
std::string RangeCell(const ThinnedSeries& series) {
  if (series.count() == 0) return "-";
  const SeriesPoint all = Thinned(series.points(), 1).front();
  return FourDigits(all.mean) + " (" + FourDigits(all.min) + " to " + FourDigits(all.max) + ")";
}

void AddText(Table& table, const std::string& name, const std::string& value) {
  if (!value.empty()) table.rows.push_back({name, value});
}

Table EnvironmentTable(const RunRecord& run, const std::string& name) {
  Table table = TableOf(name, {"", ""}, {});
  AddText(table, "path", run.path);
  AddText(table, "began", run.began);
  if (run.seconds > 0) AddText(table, "lasted, s", fmt::format("{:.1f}", run.seconds));
  if (run.launches > 0) AddText(table, "launches in the log", std::to_string(run.launches));
  if (run.ranks > 0) AddText(table, "ranks", std::to_string(run.ranks));
  for (const auto& [fact, value] : run.environment) {
    if (fact != "ranks") AddText(table, fact, value);
  }
  if (run.is_torn) AddText(table, "end", "the log ends within a line");
  return table;
}

Table OptionTable(const RunRecord& run, const std::string& name) {
  Table table = TableOf(name + ": options", {"option", "value"}, {});
  table.is_short = false;
  for (const auto& [option, value] : run.settings) table.rows.push_back({option, value});
  return table;
}

Section GpuSection(const ReportModel& model) {
  Section section = {
      "gpus", "Clocks, power and temperature",
      "As they were sampled: mean, and from the least to the most. Seconds count from "
      "the start of the file."};
  Table table = TableOf(
      "GPUs", {"run", "GPU"},
      {"SM clock, MHz", "memory clock, MHz", "power, W", std::string("temperature, ") + kCelsius});
  for (std::size_t i = 0; i < model.runs.size(); ++i) {
    const RunRecord& run = model.runs[i];
    const std::string& name = model.figures[i].name;
    for (const GpuSamples& gpu : run.gpus) {
      table.rows.push_back({name, gpu.name, RangeCell(gpu.sm_clock), RangeCell(gpu.memory_clock),
                            RangeCell(gpu.power), RangeCell(gpu.temperature)});
    }
    for (const Quantity& quantity : kQuantities) {
      Figure figure = QuantityFigure(run, name, i + 1, quantity);
      if (!figure.table.rows.empty()) section.figures.push_back(std::move(figure));
    }
  }
  if (!table.rows.empty()) section.tables.push_back(std::move(table));
  return section;
}

// The only chart of the section; without a bar its table alone.
void AddBars(const std::string& title, BarChart chart, Table table, Section& section) {
  if (!chart.rows.empty()) {
    section.figures.push_back({section.id, title, std::move(chart), std::move(table)});
  } else if (!table.rows.empty()) {
    section.tables.push_back(std::move(table));
  }
}

Section EnergySection(const ReportModel& model) {
  Section section = {
      "energy", "Energy per image",
      "Power: the mean over time of each GPU, added up. Energy per image: power over "
      "images/s. What the processors and the rest of the machine take is not in it."};
  BarChart chart = {"J", {"energy per image"}, {}};
  Table table = TableOf("Energy per image", {"run"}, {"power, W", "energy per image, J"});
  table.columns.push_back({""});
  for (const RunStats& figures : model.figures) {
    if (!figures.watts) continue;
    table.rows.push_back({figures.name, FourDigits(*figures.watts),
                          CellOf(figures.joules_per_image), figures.why_no_energy});
    if (!figures.joules_per_image) continue;
    const double joules = *figures.joules_per_image;
    chart.rows.push_back({figures.name, {joules}, FourDigits(joules)});
  }
  AddBars("Energy per image", std::move(chart), std::move(table), section);
  return section;
}

Section AccuracySection(const ReportModel& model) {
  Section section = {"accuracy", "Accuracy",
                     "Of the last evaluation in the log: percent of the validation images whose "
                     "label has the largest, or is among the five largest, logits."};
  BarChart chart = {"% of images, top-1", {"top-1"}, {}};
  Table table =
      TableOf("Accuracy", {"run"}, {"top-1, %", "top-5, %", "loss", "images/s of the evaluation"});
  const auto percent = [](const std::optional<double>& share) {
    return share ? fmt::format("{:.3f}", *share * kPercent) : "-";
  };
  for (std::size_t i = 0; i < model.runs.size(); ++i) {
    const Evaluation& evaluation = model.runs[i].evaluation;
    if (!evaluation.top1 && !evaluation.images_per_second) continue;
    const std::string& name = model.figures[i].name;
    table.rows.push_back({name, percent(evaluation.top1), percent(evaluation.top5),
                          CellOf(evaluation.loss), CellOf(evaluation.images_per_second)});
    if (!evaluation.top1 || *evaluation.top1 < 0) continue;
    chart.rows.push_back({name, {*evaluation.top1 * kPercent}, percent(evaluation.top1)});
  }
  AddBars("Top-1 accuracy", std::move(chart), std::move(table), section);
  return section;
}

Section EnvironmentSection(const ReportModel& model) {
  Section section = {"environment", "Environment", ""};
  for (std::size_t i = 0; i < model.runs.size(); ++i) {
    const std::string& name = model.figures[i].name;
    section.tables.push_back(EnvironmentTable(model.runs[i], name));
    if (!model.runs[i].settings.empty()) {
      section.tables.push_back(OptionTable(model.runs[i], name));
    }
  }
  return section;
}

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
  Table table =
      TableOf("Speed and efficiency by ranks", {"runs"},
              {"ranks", "nodes", "number of runs", "images/s", kPlusMinus, "ideal", "efficiency"});
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
  Table table = TableOf(title, {"", "beside"}, {"images/s", "difference", kPlusMinus});
  table.columns.push_back({""});
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
  Table table = TableOf("What is not the same in all runs", {""}, {});
  for (const RunStats& figures : model.figures) table.columns.push_back({figures.name, false});
  for (const DifferingSetting& setting : model.differing) {
    std::vector<std::string> row = {setting.name};
    for (const std::string& value : setting.values) row.push_back(value.empty() ? "-" : value);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Section ScalingSection(const ReportModel& model) {
  Section section = {"scaling", "Scaling",
                     "Runs that differ in ranks and nodes alone: each rank has as many images. "
                     "Ideal: images/s of the fewest ranks, times ranks over those. Efficiency: "
                     "images/s over ideal. Of several runs alike it is their mean, and "
                     "\xC2\xB1 half of its 95 % confidence interval over the runs."};
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
    LineSeries speeds = {scaling.name};
    LineSeries shares = {scaling.name};
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
      "differences", "Differences",
      "Images/s less that of the baseline. \xC2\xB1: half of the 95 % confidence "
      "interval of the difference (Welch), of runs from the means of 20 stretches of "
      "each, of groups of runs that were made alike from the runs of each. What "
      "changes from one run to the next is in the second alone."};
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
  Table groups = TableOf("Groups of runs that were made alike", {"group"},
                         {"number of runs", "images/s", kPlusMinus});
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

}  // namespace

Document DocumentOf(const ReportModel& model, const std::string& title,
                    std::vector<std::string> problems) {
  Document document = {title, {}, std::move(problems)};
  for (const auto& section_of :
       {SpeedSection, CurveSection, ScalingSection, DifferenceSection, BreakdownSection, GpuSection,
        EnergySection, AccuracySection, EnvironmentSection}) {
    Section section = section_of(model);
    if (!section.tables.empty() || !section.figures.empty()) {
      document.sections.push_back(std::move(section));
    }
  }
  return document;
}

}  // namespace bench
