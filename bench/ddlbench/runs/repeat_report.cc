// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/repeat_report.h"

#include <fmt/format.h>

#include <chrono>

#include "bench/ddlbench/log_analysis/files.h"

namespace bench {
namespace {

std::string Dashes() { return std::string(80, '-') + "\n"; }

double ItemsOf(const MilaRun& run) {
  return static_cast<double>(run.batch_size) * static_cast<double>(run.number);
}

}  // namespace

std::int64_t MicrosecondsNow() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

std::optional<MilaTimes> RepeatOutcome::times() const {
  if (observations.size() <= kSkippedObservations) return std::nullopt;
  return TimesOf(observations, run.batch_size, run.number);
}

std::string FormatObservations(const RepeatOutcome& outcome) {
  std::string text =
      "| observation | s        | images/s  |\n| ----------- | -------- | --------- |\n";
  const double items = ItemsOf(outcome.run);
  for (std::size_t i = 0; i < outcome.observations.size(); ++i) {
    const bool counts = i >= kSkippedObservations;
    const double seconds = outcome.observations[i];
    text += fmt::format("| {:<11} | {:<8.4f} | {:<9.2f} |\n",
                        fmt::format("{}{}", i + 1, counts ? "" : " (warm-up)"), seconds,
                        items / seconds);
  }
  const std::optional<MilaTimes> times = outcome.times();
  if (!times) return text;
  const Statistics& train = times->train;
  text +=
      "\n| train  | mean      | sd        | min       | max       | count |\n"
      "| ------ | --------- | --------- | --------- | --------- | ----- |\n";
  text += fmt::format("| s      | {:<9.4f} | {:<9.4f} | {:<9.4f} | {:<9.4f} | {:<5} |\n",
                      train.mean, train.sd, train.min, train.max, train.count);
  text += fmt::format("| images/s | {:<7.2f} | {:<9} | {:<9.2f} | {:<9.2f} | {:<5} |\n",
                      times->items_avg, "", times->items_min, times->items_max, train.count);
  return text;
}

std::string FormatMemcpy(std::span<const RepeatOutcome> copies) {
  std::string text =
      "| device | s         | sd        | images/s  |\n"
      "| ------ | --------- | --------- | --------- |\n";
  double sum = 0;
  for (const RepeatOutcome& outcome : copies) {
    const std::optional<MilaTimes> times = outcome.times();
    if (!times) continue;
    sum += times->items_avg;
    text += fmt::format("| {:<6} | {:<9.4f} | {:<9.4f} | {:<9.2f} |\n", outcome.run.vcd,
                        times->train.mean, times->train.sd, times->items_avg);
  }
  return text + fmt::format("| all    | {:<9} | {:<9} | {:<9.2f} |\n", "", "", sum);
}

std::filesystem::path WriteMilaReport(const RepeatOutcome& outcome,
                                      const std::filesystem::path& directory) {
  const std::filesystem::path path =
      directory / (MilaFileStem(outcome.run, outcome.start) + ".json");
  WriteFile(path, FormatMilaReport(outcome.run, outcome.times(), outcome.steps));
  return path;
}

std::string FormatSaved(const RepeatOutcome& outcome, const std::filesystem::path& report) {
  return Dashes() + FormatMilaReport(outcome.run, outcome.times(), outcome.steps) + "\n" +
         Dashes() + "Saving report to " + report.string() + "\n";
}

}  // namespace bench
