// SPDX-License-Identifier: Apache-2.0

#include "bench/report/readers/rank_times_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "bench/base/diagnostics.h"
#include "bench/run_log/log_entry.h"
#include "bench/run_log/log_lines.h"
#include "support/json.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using json = nlohmann::ordered_json;
using trainer::Error;

constexpr double kMicrosecond = 1e-6;
constexpr std::int64_t kMaxRank = 1'000'000;

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The rank of an event.
int RankOf(const json& event) {
  const auto pid = event.find("pid");
  if (pid == event.end() || !pid->is_number_integer()) throw Error(EX_DATAERR, "it has no pid");
  const auto rank = support::IntegerOf<int>(*pid, 0, kMaxRank);
  if (!rank) throw Error(EX_DATAERR, "its pid is no rank");
  return *rank;
}

// "rank 3 on gpu025"
std::string HostOf(const json& event) {
  const std::string name = event.value("/args/name"_json_pointer, "");
  const std::size_t at = name.find(" on ");
  return at == std::string::npos ? "" : name.substr(at + 4);
}

void AddDuration(const json& event, RankTimes& sums) {
  const auto duration = event.find("dur");
  if (duration == event.end() || !duration->is_number()) throw Error(EX_DATAERR, "it has no dur");
  const double seconds = duration->get<double>() * kMicrosecond;
  if (!std::isfinite(seconds) || seconds < 0) throw Error(EX_DATAERR, "its dur is no time");
  const std::string name = event.value("name", "");
  if (name == "step") {
    sums.step += seconds;
    ++sums.steps;
    return;
  }
  const auto* const phase = std::find(kPhaseNames.begin(), kPhaseNames.end(), name);
  if (phase != kPhaseNames.end()) {
    sums.phases[static_cast<std::size_t>(phase - kPhaseNames.begin())] += seconds;
  }
}

void AddEvent(std::string_view line, std::map<int, RankTimes>& sums) {
  // The head and the foot of the file, images and all-reduces.
  const bool is_name = Has(line, "\"process_name\"");
  if (!is_name && !Has(line, "\"phase\"") && !Has(line, "\"cat\": \"step\"")) return;
  if (line.ends_with(',')) line.remove_suffix(1);
  const json event = support::ParseJson<json>(
      line, {.bytes = std::size_t{1} << 20, .depth = 8, .values = 1'000'000});
  if (!event.is_object()) throw Error(EX_DATAERR, "it is no event of a trace of ddltraind's");
  RankTimes& of_rank = sums[RankOf(event)];
  if (is_name) {
    of_rank.host = HostOf(event);
  } else {
    AddDuration(event, of_rank);
  }
}

}  // namespace

std::map<int, RankTimes> ReadTrace(const std::filesystem::path& path, Diagnostics& diagnostics) {
  std::map<int, RankTimes> times;
  LogLines lines(path);
  FileDiagnostics file(path, diagnostics);
  for (LogLine line; lines.Next(line);) {
    try {
      if (line.is_cut) throw Error(EX_DATAERR, "it has more than 64 KiB");
      AddEvent(line.text, times);
    } catch (const std::exception& error) {
      file.Problem(line.number, error.what());
    }
  }
  file.End();
  std::erase_if(times, [](const auto& of_rank) { return of_rank.second.steps == 0; });
  for (auto& [rank, means] : times) {
    const auto steps = static_cast<double>(means.steps);
    means.step /= steps;
    for (double& phase : means.phases) phase /= steps;
  }
  if (times.empty()) {
    diagnostics.Problem(path.string() +
                        ": it has no step; ddltraind --trace=STEP:COUNT writes one");
  }
  return times;
}

namespace {

// What a file of a rank has: a few dozen lines.
constexpr std::int64_t kMaxLines = 10'000;

struct Sample {
  std::string_view name;
  std::string_view labels;  // between the braces
  double value = 0;
};

// name{rank="3",host="gpu025"} 0.25
std::optional<Sample> ParseSample(std::string_view line) {
  const std::size_t open = line.find('{');
  const std::size_t close = line.rfind("} ");
  if (line.starts_with('#') || open == std::string_view::npos || close == std::string_view::npos ||
      close < open) {
    return std::nullopt;
  }
  const auto value = NumberOf(line.substr(close + 2));
  if (!value) return std::nullopt;
  return Sample{line.substr(0, open), line.substr(open + 1, close - open - 1), *value};
}

// The value of a label; no value of ours has a quotation mark.
std::string LabelOf(const Sample& sample, const std::string& label) {
  const std::string start = label + "=\"";
  std::size_t at = sample.labels.find(start);
  while (at != std::string_view::npos && at != 0 && sample.labels[at - 1] != ',') {
    at = sample.labels.find(start, at + 1);
  }
  if (at == std::string_view::npos) return "";
  const std::string_view rest = sample.labels.substr(at + start.size());
  return std::string(rest.substr(0, rest.find('"')));
}

// "input_wait" is "input wait", "exposed_all_reduce" "exposed all-reduce".
bool IsPhase(std::string_view label, std::string_view phase) {
  if (label.size() != phase.size()) return false;
  for (std::size_t i = 0; i < label.size(); ++i) {
    const bool is_gap = phase[i] == ' ' || phase[i] == '-';
    if (label[i] != (is_gap ? '_' : phase[i])) return false;
  }
  return true;
}

struct RankFile {
  std::optional<int> rank;
  bool has_step = false;
  RankTimes times;

  void Add(const Sample& sample) {
    if (!rank) {
      const auto number = NumberOf(LabelOf(sample, "rank"));
      if (number && *number >= 0 && *number <= static_cast<double>(kMaxRank))
        rank = static_cast<int>(*number);
      times.host = LabelOf(sample, "host");
    }
    if (sample.name == "ddltraind_step_seconds" && sample.value >= 0) {
      times.step = sample.value;
      has_step = true;
    }
    if (sample.name != "ddltraind_phase_seconds" || sample.value < 0) return;
    const std::string phase = LabelOf(sample, "phase");
    for (std::size_t i = 0; i < kPhaseNames.size(); ++i) {
      if (IsPhase(phase, kPhaseNames[i])) times.phases[i] = sample.value;
    }
  }
};

}  // namespace

void ReadPrometheusFile(const std::filesystem::path& path, std::map<int, RankTimes>& times,
                        Diagnostics& diagnostics) {
  LogLines lines(path);
  RankFile file;
  for (LogLine line; lines.Next(line) && line.number <= kMaxLines;) {
    if (const auto sample = ParseSample(line.text)) file.Add(*sample);
  }
  if (!file.rank) {
    diagnostics.Problem(path.string() + ": it has no metric of ddltraind's with its rank");
  } else if (file.has_step) {
    times[*file.rank] = file.times;
  }
}

}  // namespace bench
