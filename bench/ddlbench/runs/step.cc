// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/step.h"

#include <fmt/format.h>
#include <sysexits.h>

#include "bench/base/diagnostics.h"
#include "bench/base/statistics.h"
#include "bench/ddlbench/log_analysis/files.h"
#include "bench/ddlbench/runs/command_runner.h"
#include "bench/run_log/log_entry.h"
#include "bench/run_log/log_lines.h"
#include "support/quoting.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

namespace fs = std::filesystem;
using trainer::Error;

constexpr double kMillisecondsPerSecond = 1e3;

struct StepLog {
  RunSteps steps;
  Phases phases;
};

// Throws Error(EX_DATAERR) that names the line which cannot be used.
StepLog ReadStepLog(const fs::path& path) {
  StepLog log;
  LogLines lines(path);
  for (LogLine line; lines.Next(line) && line.is_whole;) {
    try {
      log.steps.Add(line.text);
    } catch (const Error& error) {
      throw Error(EX_DATAERR, fmt::format("line {} of the log: {}", line.number, error.what()));
    }
    if (Phases phases = PhasesOf(line.text); !phases.empty()) log.phases = std::move(phases);
  }
  return log;
}

void CopyLines(const fs::path& path, std::ostream& messages) {
  LogLines lines(path);
  for (LogLine line; lines.Next(line);) messages << line.text << "\n";
}

}  // namespace

void CheckStepOptions(const StepOptions& options) {
  constexpr int kMaxSteps = 1'000'000;
  RequireRange("--steps", options.steps, 1, kMaxSteps);
  RequireRange("--warmup_steps", options.warmup_steps, 0, kMaxSteps);
  RequireRange("--devices", options.devices, 1, kMaxSteps);
  RequireRange("--batch_size", options.batch_size, 1, kMaxSteps);
}

std::vector<std::string> StepCommand(const StepOptions& options, const Programs& programs,
                                     const fs::path& results_dir) {
  std::vector<std::string> command = {programs.ddlrun, "-n", std::to_string(options.devices)};
  command.insert(command.end(), options.ddlrun.begin(), options.ddlrun.end());
  const std::vector<std::string> trainer = {
      programs.ddltraind,
      "--mode=training_benchmark",
      "--arch=" + options.arch,
      "--iter_unit=batch",
      fmt::format("--num_iter={}", options.warmup_steps + options.steps),
      fmt::format("--warmup_steps={}", options.warmup_steps),
      "--display_every=1",
      fmt::format("--batch_size={}", options.batch_size),
      "--precision=" + options.precision,
      "--results_dir=" + results_dir.string()};
  command.insert(command.end(), trainer.begin(), trainer.end());
  if (!options.data_dir.empty()) command.push_back("--data_dir=" + options.data_dir);
  command.insert(command.end(), options.trainer.begin(), options.trainer.end());
  return command;
}

Phases PhasesOf(std::string_view line) {
  const std::size_t start = line.find("median of ");
  const std::size_t open = line.find(" ms (", start);
  if (start == std::string_view::npos || open == std::string_view::npos || !line.ends_with(')')) {
    return {};
  }
  std::string_view rest = line.substr(open + 5);
  rest.remove_suffix(1);
  Phases phases;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(", "));
    const std::size_t blank = part.rfind(' ');
    if (blank == std::string_view::npos) return {};
    const auto milliseconds = NumberOf(part.substr(blank + 1));
    if (!milliseconds) return {};
    phases.emplace_back(part.substr(0, blank), *milliseconds);
    rest.remove_prefix(std::min(rest.size(), part.size() + 2));
  }
  return phases;
}

std::string FormatStep(std::span<const RunStep> counted, std::int64_t global_batch,
                       const Phases& phases) {
  std::vector<double> milliseconds;
  for (const RunStep& step : counted) {
    milliseconds.push_back(kMillisecondsPerSecond * static_cast<double>(global_batch) /
                           step.images_per_second);
  }
  const Statistics all = StatisticsOf(milliseconds);
  const double median = MedianOf(milliseconds);
  std::string text = fmt::format(
      "| ms      | median    | mean      | sd        | min       | max       | steps |\n"
      "| ------- | --------- | --------- | --------- | --------- | --------- | ----- |\n"
      "| step    | {:<9.3f} | {:<9.3f} | {:<9.3f} | {:<9.3f} | {:<9.3f} | {:<5} |\n\n"
      "images/s of all ranks: {:.2f}\n",
      median, all.mean, all.sd, all.min, all.max, all.count,
      kMillisecondsPerSecond * static_cast<double>(global_batch) / median);
  if (phases.empty()) return text;
  text +=
      "\n| phase              | median ms | % of step |\n"
      "| ------------------ | --------- | --------- |\n";
  for (const auto& [name, phase] : phases) {
    text += fmt::format("| {:<18} | {:<9.1f} | {:<9.1f} |\n", name, phase, 100 * phase / median);
  }
  return text;
}

int RunStepBench(const StepOptions& options, const Programs& programs, std::ostream& out,
                 std::ostream& messages) {
  CheckStepOptions(options);
  const ScratchDirectory scratch("ddlbench");
  const fs::path log_path = scratch.path() / "log";
  const std::vector<std::string> command =
      StepCommand(options, programs, scratch.path() / "results");
  messages << "ddlbench: + " + support::QuoteCommand(command) + "\n" << std::flush;
  CommandRunner runner;
  const int code = runner.Run(command, log_path);
  if (code != EX_OK) {
    CopyLines(log_path, messages);
    messages << fmt::format("ddlbench: the run failed: exit code {}\n", code) << std::flush;
    return code;
  }
  const StepLog log = ReadStepLog(log_path);
  const auto warmup = static_cast<std::size_t>(options.warmup_steps);
  const std::span<const RunStep> steps = log.steps.steps();
  const auto needed = warmup + static_cast<std::size_t>(options.steps);
  if (steps.size() < needed || !log.steps.global_batch()) {
    throw Error(EX_DATAERR, fmt::format("the log ends after {} steps of {}", steps.size(), needed));
  }
  out << FormatStep(steps.subspan(warmup), *log.steps.global_batch(), log.phases) << std::flush;
  return EX_OK;
}

}  // namespace bench
