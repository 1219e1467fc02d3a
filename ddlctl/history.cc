// SPDX-License-Identifier: Apache-2.0

#include "ddlctl/history.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "ddlctl/status_text.h"
#include "support/file.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/text/clock.h"

namespace ddlctl {
namespace {

using launcher::LaunchHistory;
using launcher::LaunchRecord;
using launcher::RunCost;
using trainer::Error;

std::optional<LaunchRecord> ReadLaunch(const std::filesystem::path& path, std::string* problem) {
  const support::WholeFile file = support::ReadWholeFile(path, launcher::kMaxRunFileBytes);
  switch (file.problem) {
    case support::ReadProblem::kNone:
      return launcher::ParseLaunch(file.content, problem);
    case support::ReadProblem::kTooLong:
    case support::ReadProblem::kNotRegular:
      *problem = "it is not of ddlrun";
      break;
    default:
      *problem = "it cannot be read: " + std::generic_category().message(file.error);
  }
  return std::nullopt;
}

std::string EndText(const LaunchHistory::Launch& launch) {
  if (launch.was_killed) return "killed";
  return launch.record.exit_code ? std::to_string(*launch.record.exit_code) : "running";
}

// A column for energy, where any launch has some.
std::string EnergyColumn(const LaunchHistory& history, const std::string& text) {
  return history.sum.energy ? fmt::format("{:<34} ", text) : "";
}

std::string HistoryRow(const LaunchHistory& history, const std::string& start,
                       const std::string& job, const RunCost& cost, const std::string& end) {
  const bool is_known = cost.Goodput().has_value();
  std::string row = fmt::format("{:<24} {:<10} {:<12} {:<12} {:<8} {:<12} {}{:<8} {}", start, job,
                                launcher::CostDuration(cost.wall),
                                is_known ? launcher::CostDuration(cost.productive) : "not known",
                                is_known ? NumberText(*cost.Goodput() * 100, 1) + " %" : "",
                                launcher::CostDuration(cost.Lost()),
                                EnergyColumn(history, launcher::EnergyText(cost)), end,
                                launcher::CausesText(cost));
  row.erase(row.find_last_not_of(' ') + 1);
  return row + "\n";
}

}  // namespace

std::vector<LaunchRecord> ReadLaunches(const std::filesystem::path& directory,
                                       const std::function<void(const std::string&)>& add_error) {
  std::vector<LaunchRecord> launches;
  bool has_any = false;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(launcher::kRunFileBeginning) ||
        !name.ends_with(launcher::kRunFileEnding)) {
      continue;
    }
    has_any = true;
    std::string problem;
    if (auto launch = ReadLaunch(entry->path(), &problem)) {
      launches.push_back(std::move(*launch));
    } else {
      add_error(Harmless(entry->path().string()) + ": " + problem);
    }
  }
  if (error) {
    throw Error(EX_NOINPUT, directory.string() + " cannot be read: " + error.message());
  }
  if (!has_any) {
    throw Error(EX_NOINPUT, directory.string() +
                                " has no run-*.json: give the directory of ddlrun --log-dir, or "
                                "--metrics-dir where that is not given");
  }
  return launches;
}

std::string HistoryText(const LaunchHistory& history) {
  std::string text = fmt::format("{:<24} {:<10} {:<12} {:<12} {:<8} {:<12} {}{:<8} {}\n", "start",
                                 "job", "wall", "productive", "goodput", "lost",
                                 EnergyColumn(history, "energy"), "exit", "lost by");
  for (const LaunchHistory::Launch& launch : history.launches) {
    const LaunchRecord& record = launch.record;
    const trainer::TimePoint start(std::chrono::seconds(static_cast<long long>(record.start)));
    text +=
        HistoryRow(history, trainer::IsoTime(start),
                   record.job.empty() ? "-" : Harmless(record.job), record.cost, EndText(launch));
  }
  if (history.launches.size() > 1) text += HistoryRow(history, "sum", "", history.sum, "");
  return text;
}

std::string HistoryJson(const LaunchHistory& history) {
  using Json = nlohmann::ordered_json;
  Json launches = Json::array();
  for (const LaunchHistory::Launch& launch : history.launches) {
    Json json = Json::parse(launcher::FormatLaunch(launch.record));
    json["was_killed"] = launch.was_killed;
    launches.push_back(std::move(json));
  }
  return Json{{"launches", std::move(launches)},
              {"sum", Json::parse(launcher::CostJson(history.sum))}}
      .dump();
}

}  // namespace ddlctl
