// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bench/report/charts/printable.h"
#include "bench/report/charts/svg_chart.h"
#include "bench/report/sections.h"

namespace bench {
namespace {

constexpr std::size_t kMaxPoints = 200;

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
     {"temperature", "temperature",
      "\xC2\xB0"
      "C",
      &GpuSamples::temperature}}};

// One quantity of all GPUs of a run; without a series when it was not sampled.
Figure QuantityFigure(const RunRecord& run, const std::string& name, std::size_t number,
                      const Quantity& quantity) {
  const std::string title = name + ": " + quantity.title + " by GPU";
  LineChart chart = {"s", quantity.unit, false, false, {}};
  Table table = {title,
                 {{"GPU", false}, {"s", true}, {"mean", true}, {"min", true}, {"max", true}},
                 {},
                 /*is_short=*/false};
  for (const GpuSamples& gpu : run.gpus) {
    const ThinnedSeries& sampled = gpu.*quantity.series;
    if (sampled.count() == 0 || chart.series.size() == kMaxSeries) continue;
    LineSeries series = {gpu.name, {}, false};
    for (const SeriesPoint& point : Thinned(sampled.points(), kMaxPoints)) {
      series.points.push_back({point.x, point.mean, point.min, point.max});
      table.rows.push_back({gpu.name, fmt::format("{:.3f}", point.x), FourDigits(point.mean),
                            FourDigits(point.min), FourDigits(point.max)});
    }
    chart.series.push_back(std::move(series));
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
  Table table = {name, {{"", false}, {"", false}}, {}};
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
  Table table = {name + ": options", {{"option", false}, {"value", false}}, {}, false};
  for (const auto& [option, value] : run.settings) table.rows.push_back({option, value});
  return table;
}

}  // namespace

Section GpuSection(const ReportModel& model) {
  Section section = {
      "gpus",
      "Clocks, power and temperature",
      "As they were sampled: mean, and from the least to the most. Seconds count from "
      "the start of the file.",
      {},
      {}};
  Table table = {"GPUs",
                 {{"run", false},
                  {"GPU", false},
                  {"SM clock, MHz", true},
                  {"memory clock, MHz", true},
                  {"power, W", true},
                  {"temperature, \xC2\xB0"
                   "C",
                   true}},
                 {}};
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

Section EnergySection(const ReportModel& model) {
  Section section = {
      "energy",
      "Energy per image",
      "Power: the mean over time of each GPU, added up. Energy per image: power over "
      "images/s. What the processors and the rest of the machine take is not in it.",
      {},
      {}};
  BarChart chart = {"J", {"energy per image"}, {}};
  Table table = {"Energy per image",
                 {{"run", false}, {"power, W", true}, {"energy per image, J", true}, {"", false}},
                 {}};
  for (const RunStats& figures : model.figures) {
    if (!figures.watts) continue;
    table.rows.push_back({figures.name, FourDigits(*figures.watts),
                          CellOf(figures.joules_per_image), figures.why_no_energy});
    if (!figures.joules_per_image) continue;
    const double joules = *figures.joules_per_image;
    chart.rows.push_back({figures.name, {joules}, FourDigits(joules)});
  }
  if (table.rows.empty()) return section;
  if (chart.rows.empty()) {
    section.tables.push_back(std::move(table));
  } else {
    section.figures.push_back({"energy", "Energy per image", std::move(chart), std::move(table)});
  }
  return section;
}

Section AccuracySection(const ReportModel& model) {
  Section section = {"accuracy",
                     "Accuracy",
                     "Of the last evaluation in the log: percent of the validation images whose "
                     "label has the largest, or is among the five largest, logits.",
                     {},
                     {}};
  BarChart chart = {"% of images, top-1", {"top-1"}, {}};
  Table table = {"Accuracy",
                 {{"run", false},
                  {"top-1, %", true},
                  {"top-5, %", true},
                  {"loss", true},
                  {"images/s of the evaluation", true}},
                 {}};
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
  if (table.rows.empty()) return section;
  if (chart.rows.empty()) {
    section.tables.push_back(std::move(table));
  } else {
    section.figures.push_back({"accuracy", "Top-1 accuracy", std::move(chart), std::move(table)});
  }
  return section;
}

Section EnvironmentSection(const ReportModel& model) {
  Section section = {"environment", "Environment", "", {}, {}};
  for (std::size_t i = 0; i < model.runs.size(); ++i) {
    const std::string& name = model.figures[i].name;
    section.tables.push_back(EnvironmentTable(model.runs[i], name));
    if (!model.runs[i].settings.empty()) {
      section.tables.push_back(OptionTable(model.runs[i], name));
    }
  }
  return section;
}

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
