// SPDX-License-Identifier: Apache-2.0

#include "launcher/cost/launch_record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "support/format_version.h"
#include "support/json.h"

namespace launcher {
namespace {

using Json = nlohmann::ordered_json;

// Of seconds, 30 million years, and of joules: what is more is neither.
constexpr double kMaxAmount = 1e15;
constexpr char kEnergyKey[] = "gpu_energy_joules";
constexpr char kLostEnergyKey[] = "lost_gpu_energy_joules";
constexpr char kLacksEnergyKey[] = "gpu_energy_is_partial";
constexpr int kMaxCount = 1'000'000'000;
constexpr support::JsonLimits kLimits = {.bytes = kMaxRunFileBytes, .depth = 4, .values = 1000};

// To the millisecond, or a thousandth, so that it is short.
double Rounded(double value) { return std::round(value * 1000) / 1000; }

// When it ended, or was last written.
double EndOf(const LaunchRecord& record) { return record.start + record.cost.wall; }

// Throws std::out_of_range, which names `key`.
double AmountOf(const Json& json, const std::string& key) {
  const auto value = json.find(key);
  if (value == json.end() || !value->is_number()) throw std::out_of_range(key);
  const auto amount = value->get<double>();
  if (!(amount >= 0 && amount <= kMaxAmount)) throw std::out_of_range(key);
  return amount;
}

int CountOf(const Json& json, const std::string& key) {
  const auto value = json.find(key);
  const auto count = value == json.end() ? std::nullopt : support::IntegerOf(*value, 0, kMaxCount);
  return count ? *count : throw std::out_of_range(key);
}

std::string TextOf(const Json& json, const std::string& key) {
  const auto value = json.find(key);
  if (value == json.end() || !value->is_string()) throw std::out_of_range(key);
  return value->get<std::string>();
}

LaunchRecord Read(const Json& json) {
  LaunchRecord record;
  record.job = TextOf(json, "job");
  record.cluster = TextOf(json, "cluster");
  record.host = TextOf(json, "host");
  record.pid = CountOf(json, "pid");
  record.requeues = CountOf(json, "requeues");
  record.start = AmountOf(json, "start");
  const auto code = json.find("exit_code");
  if (code != json.end() && !code->is_null()) record.exit_code = CountOf(json, "exit_code");
  RunCost& cost = record.cost;
  const auto source = ProgressSourceOf(TextOf(json, "progress"));
  cost.source = source ? *source : throw std::out_of_range("progress");
  cost.restarts = CountOf(json, "restarts");
  cost.wall = AmountOf(json, "wall_seconds");
  cost.unsaved = AmountOf(json, "unsaved_seconds");
  for (const CostPart& part : CostParts()) {
    const std::string key = std::string(part.name) + "_seconds";
    if (json.contains(key) && json[key].is_null()) continue;  // it is not known
    cost.*part.seconds = AmountOf(json, key);
  }
  // What was written before there was a meter has none of these.
  const auto is_known = [&json](const char* key) {
    return json.contains(key) && !json[key].is_null();
  };
  if (is_known(kEnergyKey)) cost.energy = AmountOf(json, kEnergyKey);
  if (is_known(kLostEnergyKey)) cost.lost_energy = AmountOf(json, kLostEnergyKey);
  const auto lacks = json.find(kLacksEnergyKey);
  if (lacks != json.end() && !lacks->is_boolean()) throw std::out_of_range(kLacksEnergyKey);
  cost.lacks_energy = lacks != json.end() && lacks->get<bool>();
  return record;
}

}  // namespace

std::string NameOfLaunch(const LaunchRecord& record) {
  const auto seconds = static_cast<std::time_t>(record.start);
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text = {};
  std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
  return text.data() + ("-" + std::to_string(record.pid));
}

std::string RunFileName(const LaunchRecord& record) {
  return kRunFileBeginning + NameOfLaunch(record) + kRunFileEnding;
}

std::string MetricsFileName(const LaunchRecord& record) {
  return "ddlrun-" + NameOfLaunch(record) + ".prom";
}

namespace {

Json JsonOf(const RunCost& cost) {
  const std::optional<double> goodput = cost.Goodput();
  Json json = {{"progress", NameOf(cost.source)},
               {"restarts", cost.restarts},
               {"goodput", goodput ? Json(Rounded(*goodput)) : Json(nullptr)},
               {"wall_seconds", Rounded(cost.wall)}};
  for (const CostPart& part : CostParts()) {
    json[std::string(part.name) + "_seconds"] =
        IsKnown(cost, part) ? Json(Rounded(cost.*part.seconds)) : Json(nullptr);
  }
  json["unsaved_seconds"] = Rounded(cost.unsaved);
  json[kEnergyKey] = cost.energy ? Json(Rounded(*cost.energy)) : Json(nullptr);
  json[kLostEnergyKey] = IsLostEnergyKnown(cost) ? Json(Rounded(cost.lost_energy)) : Json(nullptr);
  json[kLacksEnergyKey] = cost.lacks_energy;
  return json;
}

}  // namespace

std::string CostJson(const RunCost& cost) { return JsonOf(cost).dump(); }

std::string FormatLaunch(const LaunchRecord& record) {
  Json json = {{"ddlrun_run", kRunFormat},
               {"job", record.job},
               {"cluster", record.cluster},
               {"host", record.host},
               {"pid", record.pid},
               {"requeues", record.requeues},
               {"start", Rounded(record.start)},
               {"exit_code", record.exit_code ? Json(*record.exit_code) : Json(nullptr)}};
  json.update(JsonOf(record.cost));
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

std::optional<LaunchRecord> ParseLaunch(const std::string& text, std::string* problem) {
  const Json json = support::ParseJson<Json>(text, kLimits);
  const auto format = json.is_object() && json.contains("ddlrun_run")
                          ? support::IntegerOf(json["ddlrun_run"], 1, kMaxCount)
                          : std::nullopt;
  if (!format) {
    *problem = "it is not of ddlrun";
  } else if (*format > kRunFormat) {
    *problem = support::DescribeNewerFormat("a run file", *format, kRunFormat);
  } else {
    try {
      return Read(json);
    } catch (const std::out_of_range& error) {
      *problem = "it is damaged: '" + std::string(error.what()) + "' is missing or wrong";
    }
  }
  return std::nullopt;
}

namespace {

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    if (letter == '\\' || letter == '"') escaped += '\\';
    escaped += letter == '\n' ? ' ' : letter;
  }
  return escaped;
}

class Metrics {
 public:
  explicit Metrics(std::string labels) : labels_(std::move(labels)) {}

  // `unit` is "" for a plain number.
  void Begin(const char* name, const std::string& unit, const char* help) {
    name_ = name;
    text_ += "# HELP " + name_ + " " + help + "\n# TYPE " + name_ + " gauge\n";
    if (!unit.empty()) text_ += "# UNIT " + name_ + " " + unit + "\n";
  }
  void Add(double value, const std::string& more_labels = "") {
    text_ += name_ + "{" + labels_ + more_labels + "} " + Json(value).dump() + "\n";
  }
  std::string End() && { return std::move(text_) + "# EOF\n"; }

 private:
  const std::string labels_;
  std::string name_;
  std::string text_;
};

}  // namespace

std::string FormatMetrics(const LaunchRecord& record) {
  const RunCost& cost = record.cost;
  // An empty label is one that is not there.
  Metrics metrics("job=\"" + Escaped(record.job) + "\",cluster=\"" + Escaped(record.cluster) +
                  "\",launch=\"" + NameOfLaunch(record) + "\"");
  const auto add = [&](const char* name, const char* unit, const char* help, double value) {
    metrics.Begin(name, unit, help);
    metrics.Add(value);
  };
  add("ddlrun_running", "", "1 while ddlrun runs, 0 after its end.", record.exit_code ? 0 : 1);
  if (record.exit_code) add("ddlrun_exit_code", "", "Exit code of ddlrun.", *record.exit_code);
  add("ddlrun_start_timestamp_seconds", "seconds", "When ddlrun was started, since 1970.",
      Rounded(record.start));
  add("ddlrun_requeues", "", "How often Slurm had requeued the job before.", record.requeues);
  add("ddlrun_restarts", "", "How often this ddlrun has restarted the ranks.", cost.restarts);
  add("ddlrun_wall_seconds", "seconds", "Wall time of ddlrun.", Rounded(cost.wall));
  if (const auto goodput = cost.Goodput()) {
    add("ddlrun_goodput_ratio", "ratio", "Productive share of the wall time.", Rounded(*goodput));
  }
  if (cost.energy) {
    add("ddlrun_gpu_energy_joules", "joules",
        "Energy of the job's GPUs, in the starts of the ranks that are over.",
        Rounded(*cost.energy));
  }
  if (IsLostEnergyKnown(cost)) {
    add("ddlrun_lost_gpu_energy_joules", "joules", "Of that energy, what failures have cost.",
        Rounded(cost.lost_energy));
  }
  metrics.Begin("ddlrun_spent_seconds", "seconds", "Wall time that was not lost, by its part.");
  const auto add_parts = [&](bool is_lost, const char* label) {
    for (const CostPart& part : CostParts()) {
      // Time in the queue is that of another process.
      const bool is_shown = part.is_lost == is_lost && part.seconds != &RunCost::requeued;
      if (is_shown && IsKnown(cost, part)) {
        metrics.Add(Rounded(cost.*part.seconds),
                    std::string(",") + label + "=\"" + part.name + "\"");
      }
    }
  };
  add_parts(false, "part");
  metrics.Begin("ddlrun_lost_seconds", "seconds", "Wall time that failures have cost, by cause.");
  add_parts(true, "cause");
  return std::move(metrics).End();
}

bool WasKilled(const LaunchRecord& record, const LaunchRecord* next, double now) {
  if (record.exit_code) return false;
  const bool was_requeued = next != nullptr && !record.job.empty() && next->job == record.job &&
                            next->requeues > record.requeues;
  return was_requeued || now - EndOf(record) > kSilentSeconds;
}

LaunchHistory HistoryOf(std::vector<LaunchRecord> launches, double now) {
  std::ranges::stable_sort(launches, {}, &LaunchRecord::start);
  LaunchHistory history;
  if (!launches.empty()) history.sum.source = ProgressSource::kCheckpoints;  // AddCost weakens it
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const LaunchRecord& record = launches[i];
    // Launches of several jobs may be mixed.
    const auto is_of_job = [&record](const LaunchRecord& other) {
      return !record.job.empty() && other.job == record.job;
    };
    const auto next = std::find_if(launches.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                   launches.end(), is_of_job);
    const auto before =
        std::find_if(launches.rend() - static_cast<std::ptrdiff_t>(i), launches.rend(), is_of_job);
    LaunchHistory::Launch launch = {
        record, WasKilled(record, next == launches.end() ? nullptr : &*next, now)};
    RunCost& cost = launch.record.cost;
    if (launch.was_killed) cost = AsKilled(cost);
    if (before != launches.rend() && before->requeues < record.requeues) {
      cost.requeued = std::max(0.0, record.start - EndOf(*before));
      cost.wall += cost.requeued;
    }
    AddCost(cost, &history.sum);
    history.launches.push_back(std::move(launch));
  }
  return history;
}

}  // namespace launcher
