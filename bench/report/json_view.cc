// SPDX-License-Identifier: Apache-2.0

#include <nlohmann/json.hpp>
#include <optional>

#include "bench/report/charts/printable.h"
#include "bench/report/views.h"

namespace bench {
namespace {

using json = nlohmann::ordered_json;

// Of this object; another number where a key means something else, or is gone.
constexpr int kFormat = 1;

template <typename Value>
json OrNull(const std::optional<Value>& value) {
  return value ? json(*value) : json();
}

json OrNull(std::int64_t count) { return count == 0 ? json() : json(count); }

json TextOrNull(const std::string& text) { return text.empty() ? json() : json(Printable(text)); }

json Of(const Estimate& estimate) {
  return {{"value", estimate.value}, {"margin", OrNull(estimate.margin)}};
}

json Of(const std::optional<Estimate>& estimate) { return estimate ? Of(*estimate) : json(); }

json Of(const std::optional<StepSeconds>& step) {
  if (!step) return {};
  return {{"mean", step->mean}, {"sd", step->sd},   {"min", step->min}, {"median", step->median},
          {"p95", step->p95},   {"p99", step->p99}, {"max", step->max}};
}

json Of(const Settings& settings) {
  json object = json::object();
  for (const auto& [name, value] : settings) object[Printable(name)] = Printable(value);
  return object;
}

json OfRanks(const RunRecord& run) {
  json ranks = json::array();
  for (const auto& [rank, times] : run.times) {
    json phases = json::object();
    for (std::size_t i = 0; i < kPhaseNames.size(); ++i) phases[kPhaseNames[i]] = times.phases[i];
    ranks.push_back({{"rank", rank},
                     {"host", TextOrNull(times.host)},
                     {"steps", OrNull(times.steps)},
                     {"step_seconds", times.step},
                     {"phase_seconds", phases}});
  }
  return ranks;
}

json Of(const ThinnedSeries& series) {
  if (series.count() == 0) return {};
  const SeriesPoint all = Thinned(series.points(), 1).front();
  return {{"mean", all.mean}, {"min", all.min}, {"max", all.max}, {"count", all.count}};
}

json Of(const GpuSamples& gpu) {
  return {{"name", Printable(gpu.name)},
          {"sm_clock_mhz", Of(gpu.sm_clock)},
          {"memory_clock_mhz", Of(gpu.memory_clock)},
          {"power_watts", Of(gpu.power)},
          {"temperature_celsius", Of(gpu.temperature)},
          {"energy_joules", gpu.energy},
          {"energy_seconds", gpu.power_seconds}};
}

json Of(const RunRecord& run, const RunStats& figures, const std::string& group) {
  json gpus = json::array();
  for (const GpuSamples& gpu : run.gpus) gpus.push_back(Of(gpu));
  const RunMeasures& measures = run.measures;
  return {{"name", Printable(figures.name)},
          {"path", Printable(run.path)},
          {"group", Printable(group)},
          {"ranks", OrNull(run.ranks)},
          {"global_batch", OrNull(figures.global_batch)},
          {"began", TextOrNull(run.began)},
          {"seconds", run.seconds},
          {"launches", run.launches},
          {"steps", figures.steps},
          {"images_per_second", Of(figures.images_per_second)},
          {"train_throughput", OrNull(run.train_throughput)},
          {"step_seconds", Of(figures.step)},
          {"last_step", measures.last_step < 0 ? json() : json(measures.last_step)},
          {"last_cross_entropy", OrNull(measures.last_cross_entropy)},
          {"steps_without_finite_loss", measures.strange_losses},
          {"top1_accuracy", OrNull(run.evaluation.top1)},
          {"top5_accuracy", OrNull(run.evaluation.top5)},
          {"eval_loss", OrNull(run.evaluation.loss)},
          {"eval_throughput", OrNull(run.evaluation.images_per_second)},
          {"rank_times_from", TextOrNull(run.times_from)},
          {"rank_times", OfRanks(run)},
          {"gpus", gpus},
          {"power_watts", OrNull(figures.watts)},
          {"joules_per_image", OrNull(figures.joules_per_image)},
          {"environment", Of(run.environment)},
          {"options", Of(run.settings)}};
}

json Of(const Difference& difference, const std::string& a, const std::string& b) {
  return {{"name", Printable(b)},
          {"baseline", Printable(a)},
          {"images_per_second", Of(difference.images_per_second)},
          {"percent", Of(difference.percent)}};
}

json OfScalings(const ReportModel& model) {
  json scalings = json::array();
  for (const Scaling& scaling : model.scalings) {
    json points = json::array();
    for (const ScalingPoint& point : scaling.points) {
      json row = {{"group", Printable(model.groups[point.group].name)},
                  {"ranks", point.ranks},
                  {"images_per_second", Of(point.images_per_second)},
                  {"ideal", point.ideal},
                  {"efficiency", point.efficiency}};
      if (point.predicted) row["predicted"] = *point.predicted;
      points.push_back(std::move(row));
    }
    scalings.push_back({{"name", Printable(scaling.name)}, {"points", points}});
  }
  return scalings;
}

}  // namespace

std::string FormatReportJson(const ReportModel& model, const std::vector<std::string>& problems,
                             const std::string& version) {
  json runs = json::array();
  for (std::size_t i = 0; i < model.runs.size(); ++i) {
    const RunStats& figures = model.figures[i];
    runs.push_back(Of(model.runs[i], figures, model.groups[figures.group].name));
  }
  json groups = json::array();
  for (const RunGroup& group : model.groups) {
    groups.push_back({{"name", Printable(group.name)},
                      {"ranks", OrNull(group.ranks)},
                      {"runs", group.runs.size()},
                      {"images_per_second", Of(group.images_per_second)}});
  }
  json run_differences = json::array();
  for (const Difference& difference : model.run_differences) {
    run_differences.push_back(
        Of(difference, model.figures[difference.a].name, model.figures[difference.b].name));
  }
  json group_differences = json::array();
  for (const Difference& difference : model.group_differences) {
    group_differences.push_back(
        Of(difference, model.groups[difference.a].name, model.groups[difference.b].name));
  }
  json messages = json::array();
  for (const std::string& problem : problems) messages.push_back(Printable(problem));
  const json report = {{"format", kFormat},
                       {"program", "ddlbench " + version},
                       {"runs", runs},
                       {"groups", groups},
                       {"scaling", OfScalings(model)},
                       {"run_differences", run_differences},
                       {"group_differences", group_differences},
                       {"messages", messages}};
  return report.dump(2) + "\n";
}

}  // namespace bench
