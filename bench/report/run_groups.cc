// SPDX-License-Identifier: Apache-2.0

#include "bench/report/run_groups.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "support/number.h"

namespace bench {
namespace {

// Options that say where a run reads from or writes to, how long it lasts, or which random numbers
// it has: runs that differ in these alone were made alike.
constexpr std::array<std::string_view, 39> kOwnOptions = {"results_dir",
                                                          "model_dir",
                                                          "log_filename",
                                                          "export_dir",
                                                          "data_dir",
                                                          "data_idx_dir",
                                                          "init_from",
                                                          "finetune_checkpoint",
                                                          "num_iter",
                                                          "run_iter",
                                                          "iter_unit",
                                                          "warmup_steps",
                                                          "seed",
                                                          "resume",
                                                          "checkpoint_every",
                                                          "keep_checkpoints",
                                                          "keep_every",
                                                          "checkpoint_in_background",
                                                          "dump_state",
                                                          "dump_state_step",
                                                          "dry_run",
                                                          "to_predict",
                                                          "labels",
                                                          "json",
                                                          "stop_at_top1",
                                                          "stop_margin",
                                                          "record_cache",
                                                          "plan_cache",
                                                          "variability_dir",
                                                          "job_comment",
                                                          "mllog",
                                                          "mllog_division",
                                                          "mllog_org",
                                                          "mllog_platform",
                                                          "mllog_status",
                                                          "prometheus_dir",
                                                          "tensorboard_dir",
                                                          "trace",
                                                          "display_every"};
// Those whose place does not matter, but whether there is one: images come faster, or each op of a
// step is timed.
constexpr std::array<std::string_view, 2> kGivenOrNot = {"record_cache", "variability_dir"};
// What the program says of its run, that speed depends on.
constexpr std::array<std::string_view, 2> kSharedFacts = {"program", "backend"};
// Places of files, which differ in all runs and say nothing.
constexpr std::array<std::string_view, 9> kPlaces = {
    "results_dir",     "model_dir", "log_filename",    "export_dir", "prometheus_dir",
    "tensorboard_dir", "mllog",     "variability_dir", "command"};

template <std::size_t kCount>
bool Contains(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
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
    if (!Contains(kOwnOptions, name)) facts[name] = value;
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

}  // namespace bench
