// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/log_analysis/mila_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/ddlbench/log_analysis/sha256.h"
#include "trainer/core/error.h"
#include "trainer/telemetry/text/python_format.h"

namespace bench {
namespace {

using nlohmann::json;

constexpr std::size_t kLosses = 100;

// "Mon Nov 23 02:57:23 2026", as Python's time.ctime.
std::string FormatUtc(std::time_t time) {
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 64> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%a %b %e %H:%M:%S %Y", &parts);
  return {text.data(), size};
}

json TimerOf(const Statistics& timer) {
  return {{"avg", timer.mean}, {"min", timer.min},     {"max", timer.max},
          {"sd", timer.sd},    {"count", timer.count}, {"unit", "s"}};
}

trainer::Error NoReport(const std::string& why) {
  return {EX_DATAERR, "it is no report of a benchmark of Mila's: " + why};
}

}  // namespace

std::vector<double> ObservationsOf(std::span<const RunStep> steps, std::int64_t global_batch,
                                   int repeat, int number) {
  std::vector<double> observations;
  std::size_t at = 0;
  for (int i = 0; i < repeat; ++i) {
    double seconds = 0;
    for (int k = 0; k < number; ++k) {
      DDL_CHECK(at < steps.size());
      seconds += static_cast<double>(global_batch) / steps[at++].images_per_second;
    }
    observations.push_back(seconds);
  }
  return observations;
}

MilaTimes TimesOf(std::span<const double> observations, std::int64_t batch_size, int number) {
  DDL_CHECK(observations.size() > kSkippedObservations);
  MilaTimes times;
  times.train = StatisticsOf(observations.subspan(kSkippedObservations));
  const double items = static_cast<double>(batch_size) * number;
  times.items_avg = items / times.train.mean;
  times.items_min = items / times.train.max;
  times.items_max = items / times.train.min;
  return times;
}

std::string FormatEta(int observation, int repeat, double seconds, std::optional<double> loss) {
  const int left = repeat - (observation + 1);
  const std::string text =
      fmt::format("[{:3}/{:3}] | ETA: {:6.2f} min ", observation, repeat, seconds * left / 60);
  return loss ? text + fmt::format("| Batch Loss {:8.4f}", *loss) : text;
}

std::string UniqueIdOf(const MilaRun& run) {
  std::map<std::string, trainer::LogValue> arguments = {{"cpu_cores", std::int64_t{run.cpu_cores}},
                                                        {"devices", std::int64_t{run.devices}},
                                                        {"number", std::int64_t{run.number}},
                                                        {"repeat", std::int64_t{run.repeat}},
                                                        {"version", run.version}};
  if (!run.is_loader) {
    arguments["arch"] = run.arch;
    arguments["half"] = run.half;
    arguments["lr"] = run.learning_rate;
  }
  std::string text;
  for (const auto& [key, value] : arguments) text += key + trainer::PythonString(value);
  return Sha256(text);
}

std::string FormatMilaReport(const MilaRun& run, const std::optional<MilaTimes>& times,
                             std::span<const RunStep> steps) {
  json losses = json::array();
  for (const RunStep& step : steps.last(std::min(steps.size(), kLosses))) {
    losses.push_back(step.cross_entropy);
  }
  json report = {{"batch_loss", losses},
                 {"batch_size", run.batch_size},
                 {"completed", run.completed},
                 {"cpu_cores", run.cpu_cores},
                 {"cuda", !run.gpu.empty()},
                 {"data", run.data},
                 {"devices", run.devices},
                 {"end_time", FormatUtc(run.end_time)},
                 {"epoch_loss", json::array()},
                 {"hostname", run.hostname},
                 {"jr_id", run.jr_id},
                 {"metrics", json::object()},
                 {"name", run.name},
                 {"number", run.number},
                 {"repeat", run.repeat},
                 {"run_id", run.run_id},
                 {"start_time", FormatUtc(run.start_time)},
                 {"suite", run.suite},
                 {"unique_id", UniqueIdOf(run)},
                 {"vcd", run.vcd},
                 {"version", run.version}};
  if (!run.is_loader) {
    report["arch"] = run.arch;
    report["half"] = run.half;
    report["lr"] = run.learning_rate;
  }
  if (times) {
    report["train"] = TimerOf(times->train);
    report["train_item"] = {{"avg", times->items_avg},
                            {"max", times->items_max},
                            {"min", times->items_min},
                            {"range", times->items_max - times->items_min},
                            {"unit", "items/sec"}};
  }
  if (!run.gpu.empty()) report["gpu"] = run.gpu;
  return report.dump(4, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
}

std::string MilaFileStem(const MilaRun& run, std::int64_t microseconds) {
  constexpr std::int64_t kMillion = 1'000'000;
  const std::time_t seconds = microseconds / kMillion;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 64> time{};
  const std::size_t size = std::strftime(time.data(), time.size(), "%Y%m%d-%H%M%S", &parts);
  return fmt::format("{}.{}.R{}.D{}{}.{}-{:06}", run.suite, run.name, run.run_id, run.vcd,
                     run.completed ? "" : ".FAIL", std::string_view(time.data(), size),
                     microseconds % kMillion);
}

MilaResult ParseMilaReport(const std::string& text) {
  const json report = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (report.is_discarded()) throw NoReport("it is no JSON");
  if (!report.is_object()) throw NoReport("it is no object");
  const auto name = report.find("name");
  if (name == report.end() || !name->is_string()) throw NoReport("it has no name");
  if (const auto completed = report.find("completed");
      completed != report.end() && *completed == false) {
    throw trainer::Error(EX_DATAERR, "it is of a run that has failed");
  }
  const auto item = report.find("train_item");
  if (item == report.end() || !item->is_object() || !item->contains("avg") ||
      !item->at("avg").is_number()) {
    throw NoReport("it has no number train_item.avg");
  }
  MilaResult result;
  result.name = name->get<std::string>();
  result.items_per_second = item->at("avg").get<double>();
  if (!std::isfinite(result.items_per_second) || result.items_per_second <= 0) {
    throw NoReport("train_item.avg is no speed");
  }
  return result;
}

}  // namespace bench
