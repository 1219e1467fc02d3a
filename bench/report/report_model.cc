// SPDX-License-Identifier: Apache-2.0

#include "bench/report/report_model.h"

#include <cmath>
#include <utility>

#include "bench/base/statistics.h"
#include "bench/report/run_groups.h"
#include "bench/run_log/log_entry.h"
#include "support/number.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

// Beyond what any step has.
constexpr double kMaxBatch = 1e12;

std::optional<std::int64_t> GlobalBatchOf(const RunRecord& run) {
  const auto fixed = FixedGlobalBatch(SettingOf(run.settings, "mode"),
                                      SettingOf(run.settings, "global_batch_size"));
  if (fixed) return fixed;
  const auto batch = NumberOf(SettingOf(run.settings, "batch_size"));
  if (!batch || run.ranks == 0 || !(*batch >= 1) || *batch != std::floor(*batch)) {
    return std::nullopt;
  }
  const auto batches =
      BatchesOfStep(SettingOf(run.settings, "mode"), SettingOf(run.settings, "accumulate"));
  if (!batches) return std::nullopt;
  const double images = *batch * static_cast<double>(run.ranks) * static_cast<double>(*batches);
  if (images > kMaxBatch) return std::nullopt;
  return static_cast<std::int64_t>(images);
}

StepSeconds StepOf(const RunMeasures& measures, double images) {
  const Statistics all = measures.seconds_per_image_statistics.Sample();
  const std::vector<double> quantiles =
      measures.seconds_per_image_sample.Quantiles({0.5, 0.95, 0.99});
  return {.mean = all.mean * images,
          .sd = all.sd * images,
          .min = all.min * images,
          .median = quantiles[0] * images,
          .p95 = quantiles[1] * images,
          .p99 = quantiles[2] * images,
          .max = all.max * images};
}

void AddSpeed(const RunMeasures& measures, RunStats& figures) {
  const Statistics all = measures.seconds_per_image_statistics.Sample();
  figures.steps = static_cast<std::int64_t>(all.count);
  if (all.count == 0) return;
  for (const double seconds : BatchMeans(measures.seconds_per_image)) {
    figures.batch_speeds.push_back(1 / seconds);
  }
  figures.images_per_second = Estimate{1 / all.mean, MeanMargin(figures.batch_speeds)};
  if (figures.global_batch) {
    figures.step = StepOf(measures, static_cast<double>(*figures.global_batch));
  }
}

void AddEnergy(const RunRecord& run, RunStats& figures) {
  double watts = 0;
  std::int64_t measured = 0;
  for (const GpuSamples& gpu : run.gpus) {
    if (gpu.power_seconds <= 0) continue;
    watts += gpu.energy / gpu.power_seconds;
    ++measured;
  }
  if (measured == 0) return;
  figures.watts = watts;
  if (run.ranks != 0 && measured != run.ranks) {
    figures.why_no_energy = "power of " + support::Counted(measured, "GPU") + " for " +
                            support::Counted(run.ranks, "rank");
  } else if (!figures.images_per_second) {
    figures.why_no_energy = "no speed";
  } else {
    figures.joules_per_image = watts / figures.images_per_second->value;
  }
}

RunStats FiguresOf(const RunRecord& run, const std::string& name) {
  RunStats figures;
  figures.name = name;
  figures.global_batch = GlobalBatchOf(run);
  AddSpeed(run.measures, figures);
  AddEnergy(run, figures);
  return figures;
}

// images/s of those runs of a group that have one.
std::vector<double> SpeedsOf(const RunGroup& group, const std::vector<RunStats>& figures) {
  std::vector<double> speeds;
  for (const std::size_t run : group.runs) {
    if (figures[run].images_per_second) speeds.push_back(figures[run].images_per_second->value);
  }
  return speeds;
}

// `value_a` and `value_b` are what the observations are of.
Difference DifferenceOf(std::size_t a, double value_a, const std::vector<double>& observations_a,
                        std::size_t b, double value_b, const std::vector<double>& observations_b) {
  Difference difference;
  difference.a = a;
  difference.b = b;
  difference.images_per_second = {value_b - value_a,
                                  DifferenceMargin(observations_a, observations_b)};
  difference.percent.value = kPercent * difference.images_per_second.value / value_a;
  if (difference.images_per_second.margin) {
    difference.percent.margin = kPercent * *difference.images_per_second.margin / value_a;
  }
  return difference;
}

std::vector<Difference> RunDifferences(const std::vector<RunStats>& figures, std::size_t baseline) {
  std::vector<Difference> differences;
  const RunStats& base = figures[baseline];
  if (!base.images_per_second) return differences;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const RunStats& other = figures[i];
    if (i == baseline || !other.images_per_second) continue;
    differences.push_back(DifferenceOf(baseline, base.images_per_second->value, base.batch_speeds,
                                       i, other.images_per_second->value, other.batch_speeds));
  }
  return differences;
}

std::vector<Difference> GroupDifferences(const std::vector<RunGroup>& groups,
                                         const std::vector<RunStats>& figures,
                                         std::size_t baseline) {
  std::vector<Difference> differences;
  const RunGroup& base = groups[baseline];
  if (!base.images_per_second) return differences;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const RunGroup& other = groups[i];
    if (i == baseline || !other.images_per_second) continue;
    differences.push_back(DifferenceOf(baseline, base.images_per_second->value,
                                       SpeedsOf(base, figures), i, other.images_per_second->value,
                                       SpeedsOf(other, figures)));
  }
  return differences;
}

}  // namespace

ReportModel MakeReportModel(std::vector<RunRecord> runs, std::size_t baseline) {
  DDL_CHECK(baseline < runs.size());
  ReportModel model;
  model.runs = std::move(runs);
  const std::vector<std::string> names = NamesOfRuns(model.runs);
  for (std::size_t i = 0; i < model.runs.size(); ++i) {
    model.figures.push_back(FiguresOf(model.runs[i], names[i]));
  }
  model.groups = GroupsOf(model.runs);
  for (std::size_t i = 0; i < model.groups.size(); ++i) {
    RunGroup& group = model.groups[i];
    for (const std::size_t run : group.runs) model.figures[run].group = i;
    const std::vector<double> speeds = SpeedsOf(group, model.figures);
    if (speeds.empty()) continue;
    group.images_per_second = Estimate{SampleStatisticsOf(speeds).mean, MeanMargin(speeds)};
  }
  model.scalings = ScalingsOf(model.runs, model.groups);
  model.run_differences = RunDifferences(model.figures, baseline);
  if (model.groups.size() < model.runs.size()) {
    model.group_differences =
        GroupDifferences(model.groups, model.figures, model.figures[baseline].group);
  }
  model.differing = DifferingSettingsOf(model.runs);
  return model;
}

}  // namespace bench
