// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/report/readers/file_diagnostics.h"
#include "bench/report/readers/rank_times_reader.h"
#include "bench/run_log/log_lines.h"
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
  const auto rank = pid->get<std::int64_t>();
  if (rank < 0 || rank > kMaxRank) throw Error(EX_DATAERR, "its pid is no rank");
  return static_cast<int>(rank);
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
  const json event = json::parse(line, nullptr, /*allow_exceptions=*/false);
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

}  // namespace bench
