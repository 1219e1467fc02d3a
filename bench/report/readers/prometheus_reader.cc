// SPDX-License-Identifier: Apache-2.0

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "bench/report/readers/rank_times_reader.h"
#include "bench/run_log/log_entry.h"
#include "bench/run_log/log_lines.h"
#include "trainer/core/error.h"

namespace bench {
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
      constexpr double kMaxRank = 1e6;
      if (number && *number >= 0 && *number <= kMaxRank) rank = static_cast<int>(*number);
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
