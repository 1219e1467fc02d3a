// SPDX-License-Identifier: Apache-2.0

#include "bench/report/report_model.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "bench/base/statistics.h"
#include "bench/report/readers/run.h"
#include "bench/run_log/log_entry.h"
#include "scaling/predict.h"
#include "support/number.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

// Runs that differ in these options alone were made alike: where a run reads from or writes to,
constexpr std::string_view kPlaceOptions[] = {
    "results_dir", "model_dir",       "log_filename",   "export_dir",
    "data_dir",    "data_idx_dir",    "init_from",      "finetune_checkpoint",
    "dump_state",  "labels",          "json",           "record_cache",
    "plan_cache",  "variability_dir", "prometheus_dir", "tensorboard_dir",
    "trace"};
// how long it lasts, or which random numbers it has,
constexpr std::string_view kCourseOptions[] = {
    "num_iter", "run_iter",   "iter_unit",    "warmup_steps", "seed",         "dump_state_step",
    "dry_run",  "to_predict", "stop_at_top1", "stop_margin",  "display_every"};
// when checkpoints are written,
constexpr std::string_view kCheckpointOptions[] = {"resume", "checkpoint_every", "keep_checkpoints",
                                                   "keep_every", "checkpoint_in_background"};
// and who is told of it.
constexpr std::string_view kTellingOptions[] = {"job_comment", "mllog",          "mllog_division",
                                                "mllog_org",   "mllog_platform", "mllog_status"};
// Those whose place does not matter, but whether there is one: images come faster, or each op of a
// step is timed.
constexpr std::string_view kGivenOrNot[] = {"record_cache", "variability_dir"};
// What the program says of its run, that speed depends on.
constexpr std::string_view kSharedFacts[] = {"program", "backend"};
// Places of files, which differ in all runs and say nothing.
constexpr std::string_view kPlaces[] = {"results_dir", "model_dir",       "log_filename",
                                        "export_dir",  "prometheus_dir",  "tensorboard_dir",
                                        "mllog",       "variability_dir", "command"};

bool Contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool IsOwnOption(std::string_view name) {
  return Contains(kPlaceOptions, name) || Contains(kCourseOptions, name) ||
         Contains(kCheckpointOptions, name) || Contains(kTellingOptions, name);
}

// What the back end says of itself, without which GPU rank 0 has and how many threads, which follow
// from the number of ranks: "cuda: NVIDIA H200 (GPU 3), ...", "cpu: oneDNN 2.6.3, ..., 2 threads".
std::string WithoutOwnNumbers(std::string backend) {
  constexpr std::string_view kGpu = " (GPU ";
  if (const std::size_t at = backend.find(kGpu); at != std::string::npos) {
    const std::size_t end = backend.find(')', at);
    if (end != std::string::npos) backend.erase(at, end + 1 - at);
  }
  const std::size_t last = backend.rfind(", ");
  if (last != std::string::npos && backend.find(" thread", last) != std::string::npos) {
    backend.erase(last);
  }
  return backend;
}

using Facts = std::map<std::string, std::string>;

// What runs that were made alike have in common, but for ranks and nodes.
Facts FactsOf(const RunRecord& run) {
  Facts facts;
  for (const auto& [name, value] : run.settings) {
    if (!IsOwnOption(name)) facts[name] = value;
    if (Contains(kGivenOrNot, name) && !value.empty()) facts[name] = "given";
  }
  for (const auto& [name, value] : run.environment) {
    if (Contains(kSharedFacts, name)) facts[name] = WithoutOwnNumbers(value);
  }
  if (!run.settings.empty()) {
    facts["images"] = SettingOf(run.settings, "data_dir").empty() ? "synthetic" : "real";
  }
  return facts;
}

std::string NodesOf(const RunRecord& run) { return SettingOf(run.environment, "nodes"); }

// "precision=fp16, batch_size=64": those of `facts` that are in `names`.
std::string Chosen(const Facts& facts, const std::set<std::string>& names) {
  std::string text;
  for (const auto& [name, value] : facts) {
    if (!names.contains(name)) continue;
    text += (text.empty() ? "" : ", ");
    text += name;
    text += "=";
    text += value;
  }
  return text;
}

// The names of facts that are not the same in all runs which say anything of themselves.
std::set<std::string> DifferingNames(const std::vector<RunRecord>& runs) {
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, std::size_t> counts;
  std::size_t speaking = 0;
  for (const RunRecord& run : runs) {
    const Facts facts = FactsOf(run);
    if (!facts.empty()) ++speaking;
    for (const auto& [name, value] : facts) {
      values[name].insert(value);
      ++counts[name];
    }
  }
  std::set<std::string> names;
  for (const auto& [name, of_runs] : values) {
    if (of_runs.size() > 1 || counts[name] < speaking) names.insert(name);
  }
  return names;
}

std::string GroupName(const RunRecord& run, bool has_several_nodes,
                      const std::set<std::string>& names) {
  std::string name = run.ranks == 0 ? "ranks unknown" : support::Counted(run.ranks, "rank");
  const std::string nodes = NodesOf(run);
  if (has_several_nodes && !nodes.empty()) {
    name += " on " + nodes + (nodes == "1" ? " node" : " nodes");
  }
  const std::string more = Chosen(FactsOf(run), names);
  return more.empty() ? name : name + ", " + more;
}

// The parts of a path, without "." and an empty last one.
std::vector<std::string> PartsOf(const std::string& path) {
  std::vector<std::string> parts;
  for (const std::filesystem::path& part : std::filesystem::path(path).lexically_normal()) {
    if (!part.empty() && part != ".") parts.push_back(part.string());
  }
  return parts;
}

// `groups` with their speeds.
std::vector<Scaling> ScalingsOf(const std::vector<RunRecord>& runs,
                                const std::vector<RunGroup>& groups) {
  const std::set<std::string> names = DifferingNames(runs);
  std::vector<Scaling> scalings;
  std::map<Facts, std::size_t> known;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const RunGroup& group = groups[i];
    if (group.ranks == 0 || !group.images_per_second) continue;
    const Facts facts = FactsOf(runs[group.runs.front()]);
    const auto [at, is_new] = known.try_emplace(facts, scalings.size());
    if (is_new) {
      const std::string name = Chosen(facts, names);
      scalings.push_back({name.empty() ? "all runs" : name, {}});
    }
    ScalingPoint point;
    point.group = i;
    point.ranks = group.ranks;
    point.images_per_second = *group.images_per_second;
    std::vector<ScalingPoint>& points = scalings[at->second].points;
    const double base =
        points.empty() ? point.images_per_second.value : points.front().images_per_second.value;
    const std::int64_t base_ranks = points.empty() ? point.ranks : points.front().ranks;
    point.ideal = base * static_cast<double>(point.ranks) / static_cast<double>(base_ranks);
    point.efficiency = point.images_per_second.value / point.ideal;
    points.push_back(point);
  }
  std::erase_if(scalings, [](const Scaling& scaling) {
    return scaling.points.front().ranks == scaling.points.back().ranks;
  });
  return scalings;
}

// All options and facts of which two runs have different values, but for where they write to.
std::vector<DifferingSetting> DifferingSettingsOf(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  const auto note = [&](const Settings& settings) {
    for (const auto& [name, value] : settings) {
      const bool is_known = std::find(names.begin(), names.end(), name) != names.end();
      if (!is_known && !Contains(kPlaces, name)) names.push_back(name);
    }
  };
  for (const RunRecord& run : runs) {
    note(run.environment);
    note(run.settings);
  }
  std::vector<DifferingSetting> differing;
  for (const std::string& name : names) {
    DifferingSetting setting = {name, {}};
    for (const RunRecord& run : runs) {
      const std::string fact = SettingOf(run.environment, name);
      setting.values.push_back(fact.empty() ? SettingOf(run.settings, name) : fact);
    }
    const auto& values = setting.values;
    if (std::any_of(values.begin(), values.end(),
                    [&](const std::string& value) { return value != values.front(); })) {
      differing.push_back(std::move(setting));
    }
  }
  return differing;
}

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

// From the one of number `base`, of runs or of groups that have a speed.
template <typename Part, typename SpeedsOfPart>
std::vector<Difference> DifferencesFrom(std::size_t base, const std::vector<Part>& parts,
                                        const SpeedsOfPart& speeds_of) {
  std::vector<Difference> differences;
  const Part& a = parts[base];
  if (!a.images_per_second) return differences;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& b = parts[i];
    if (i == base || !b.images_per_second) continue;
    differences.push_back(DifferenceOf(base, a.images_per_second->value, speeds_of(a), i,
                                       b.images_per_second->value, speeds_of(b)));
  }
  return differences;
}

// Images of a rank in a step; 0 where a run has not said it, and of networks other than ResNet-50.
double BatchOf(const ReportModel& model, const ScalingPoint& point) {
  const std::size_t run = model.groups[point.group].runs.front();
  const std::string arch = SettingOf(model.runs[run].settings, "arch");
  if (!arch.empty() && arch != "resnet50") return 0;
  return static_cast<double>(model.figures[run].global_batch.value_or(0)) /
         static_cast<double>(point.ranks);
}

void PredictPoints(const ReportModel& model, const scaling::Machine& machine, Scaling& curve) {
  scaling::Training training;
  training.links = scaling::LinksOf(machine);
  const std::int64_t gpus = training.links.gpus_per_node;
  scaling::Speeds speeds;
  for (const ScalingPoint& point : curve.points) {
    if (point.ranks == 1) speeds.one_gpu = point.images_per_second.value;
    if (point.ranks == gpus) speeds.one_node = point.images_per_second.value;
    if (point.ranks == 2 * gpus) speeds.two_nodes = point.images_per_second.value;
  }
  const ScalingPoint& first = curve.points.front();
  training.batch = BatchOf(model, first);
  if (speeds.one_gpu <= 0 || training.batch <= 0) return;
  const std::size_t run = model.groups[first.group].runs.front();
  if (SettingOf(model.runs[run].settings, "reduce_precision") == "16bit") {
    training.sums = scaling::AllReduceModel::kHalf;
  }
  scaling::StepWork work;
  work.buckets = scaling::ResNet50Buckets(training.sums, training.rule);
  training.work =
      scaling::Calibrate(work, training.links, training.batch, speeds, scaling::Overlap::kAuto)
          .work;
  for (ScalingPoint& point : curve.points) {
    point.predicted = Predict(training, static_cast<int>(point.ranks)).images_per_second;
  }
}

}  // namespace

std::vector<std::string> NamesOfRuns(const std::vector<RunRecord>& runs) {
  std::vector<std::vector<std::string>> paths;
  for (const RunRecord& run : runs) paths.push_back(PartsOf(run.path));
  const bool are_equally_deep = std::all_of(paths.begin(), paths.end(), [&](const auto& path) {
    return path.size() == paths.front().size();
  });
  const auto is_shared = [&](std::size_t part) {
    return std::all_of(paths.begin(), paths.end(), [&](const auto& path) {
      return part < path.size() && path[part] == paths.front()[part];
    });
  };
  const auto shortest = std::min_element(
      paths.begin(), paths.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::string name;
    bool is_front = true;
    for (std::size_t part = 0; part < paths[i].size(); ++part) {
      const bool is_last = part + 1 == paths[i].size();
      is_front = is_front && part + 1 < shortest->size() && is_shared(part);
      const bool is_left_out = (is_front || are_equally_deep) && is_shared(part);
      // A name has one part at least.
      if (is_left_out && !(is_last && name.empty())) continue;
      name += (name.empty() ? "" : "/") + paths[i][part];
    }
    names.push_back(name.empty() ? runs[i].path : name);
  }
  return names;
}

std::vector<RunGroup> GroupsOf(const std::vector<RunRecord>& runs) {
  const std::set<std::string> names = DifferingNames(runs);
  std::set<std::string> nodes;
  for (const RunRecord& run : runs) {
    if (!NodesOf(run).empty()) nodes.insert(NodesOf(run));
  }
  const bool has_several_nodes = nodes.size() > 1;
  std::vector<RunGroup> groups;
  std::map<std::tuple<std::int64_t, std::string, Facts>, std::size_t> known;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto [at, is_new] =
        known.try_emplace({runs[i].ranks, NodesOf(runs[i]), FactsOf(runs[i])}, groups.size());
    if (is_new) {
      RunGroup group;
      group.name = GroupName(runs[i], has_several_nodes, names);
      group.ranks = runs[i].ranks;
      groups.push_back(std::move(group));
    }
    groups[at->second].runs.push_back(i);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const RunGroup& a, const RunGroup& b) { return a.ranks < b.ranks; });
  return groups;
}

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
  model.run_differences = DifferencesFrom(
      baseline, model.figures, [](const RunStats& figures) { return figures.batch_speeds; });
  if (model.groups.size() < model.runs.size()) {
    model.group_differences =
        DifferencesFrom(model.figures[baseline].group, model.groups,
                        [&](const RunGroup& group) { return SpeedsOf(group, model.figures); });
  }
  model.differing = DifferingSettingsOf(model.runs);
  return model;
}

void AddPredictions(ReportModel& model, const scaling::Machine& machine) {
  for (Scaling& curve : model.scalings) PredictPoints(model, machine, curve);
}

}  // namespace bench
