// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/repeat.h"

#include <fmt/format.h>
#include <sysexits.h>

#include <algorithm>
#include <chrono>

#include "bench/ddlbench/command_runner.h"
#include "bench/ddlbench/files.h"
#include "bench/ddlbench/repeat_progress.h"
#include "bench/run_log/log_lines.h"
#include "launcher/cli/quoting.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

namespace fs = std::filesystem;
using trainer::Error;

std::int64_t MicrosecondsNow() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

// "NVIDIA H200" of "... GPU of rank 0: NVIDIA H200, 3.4 of 139.0 GB in use"; "" of other lines.
std::string GpuOf(std::string_view line) {
  constexpr std::string_view kStart = "GPU of rank 0: ";
  const std::size_t start = line.find(kStart);
  if (start == std::string_view::npos) return "";
  const std::string_view rest = line.substr(start + kStart.size());
  return std::string(rest.substr(0, rest.rfind(", ", rest.find(" GB in use"))));
}

// What a log says.
struct RepeatLog {
  RunSteps steps;
  std::string gpu;
};

// Throws Error(EX_DATAERR) that names file and line when it is not whole.
RepeatLog ReadLog(const fs::path& path, std::size_t needed) {
  RepeatLog log;
  LogLines lines(path);
  LogLine line;
  while (lines.Next(line) && line.is_whole) {
    try {
      log.steps.Add(line.text);
    } catch (const Error& error) {
      throw Error(EX_DATAERR, fmt::format("{}:{}: {}", path.string(), line.number, error.what()));
    }
    if (log.gpu.empty()) log.gpu = GpuOf(line.text);
  }
  if (log.steps.steps().size() < needed || !log.steps.global_batch()) {
    throw Error(EX_DATAERR, fmt::format("{}:{}: the log ends after {} steps of {}", path.string(),
                                        line.number, log.steps.steps().size(), needed));
  }
  return log;
}

std::string Dashes() { return std::string(80, '-') + "\n"; }

std::string FormatObservations(const std::vector<double>& observations, const MilaTimes& times,
                               double items) {
  std::string text =
      "| observation | s        | images/s  |\n| ----------- | -------- | --------- |\n";
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const bool counts = i >= kSkippedObservations;
    text += fmt::format("| {:<11} | {:<8.4f} | {:<9.2f} |\n",
                        fmt::format("{}{}", i + 1, counts ? "" : " (warm-up)"), observations[i],
                        items / observations[i]);
  }
  const Statistics& train = times.train;
  text +=
      "\n| train  | mean      | sd        | min       | max       | count |\n"
      "| ------ | --------- | --------- | --------- | --------- | ----- |\n";
  text += fmt::format("| s      | {:<9.4f} | {:<9.4f} | {:<9.4f} | {:<9.4f} | {:<5} |\n",
                      train.mean, train.sd, train.min, train.max, train.count);
  text += fmt::format("| images/s | {:<7.2f} | {:<9} | {:<9.2f} | {:<9.2f} | {:<5} |\n",
                      times.items_avg, "", times.items_min, times.items_max, train.count);
  return text;
}

}  // namespace

void CheckRepeatOptions(const RepeatOptions& options) {
  if (options.repeat <= kSkippedObservations) {
    throw Error(EX_USAGE, fmt::format("--repeat must be more than {0}: the first {0} are warm-up",
                                      kSkippedObservations));
  }
  constexpr int kMaxSteps = 1'000'000;
  if (options.number < 1 || options.number > kMaxSteps / options.repeat) {
    throw Error(EX_USAGE,
                "--number must be 1 or more, and --repeat times --number at most 1000000");
  }
  if (options.devices < 1 || options.batch_size < 1 || options.batch_size % options.devices != 0) {
    throw Error(EX_USAGE,
                fmt::format("--batch_size={} is of all ranks together: it must be 1 or more and a "
                            "multiple of --devices={}, which must be 1 or more",
                            options.batch_size, options.devices));
  }
  for (const auto& [option, word] :
       {std::pair("--suite", options.suite), {"--name", options.name}}) {
    if (word.empty() || word.find_first_of("./\n") != std::string::npos) {
      throw Error(EX_USAGE,
                  fmt::format("{} needs a word without '.' and '/', not '{}': it is a part "
                              "of the report's name",
                              option, word));
    }
  }
}

std::vector<std::string> RepeatCommand(const RepeatOptions& options, const Programs& programs,
                                       const fs::path& results_dir) {
  std::vector<std::string> command = {programs.ddlrun, "-n", std::to_string(options.devices)};
  command.insert(command.end(), options.ddlrun.begin(), options.ddlrun.end());
  const std::vector<std::string> trainer = {
      programs.ddltraind,
      "--mode=training_benchmark",
      "--arch=" + options.arch,
      "--iter_unit=batch",
      fmt::format("--num_iter={}", options.repeat * options.number),
      fmt::format("--warmup_steps={}", kSkippedObservations * options.number),
      "--display_every=1",
      fmt::format("--batch_size={}", options.batch_size / options.devices),
      fmt::format("--lr_init={}", options.learning_rate),
      options.half ? "--precision=fp16" : "--precision=fp32",
      "--results_dir=" + results_dir.string()};
  command.insert(command.end(), trainer.begin(), trainer.end());
  if (!options.data_dir.empty()) command.push_back("--data_dir=" + options.data_dir);
  command.insert(command.end(), options.trainer.begin(), options.trainer.end());
  return command;
}

std::string VisibleDevices(const std::string& visible, int devices) {
  const bool has_numbers =
      !visible.empty() && visible.find_first_not_of("0123456789,") == std::string::npos;
  if (has_numbers && visible.front() != ',' && visible.back() != ',' &&
      visible.find(",,") == std::string::npos) {
    return visible;
  }
  std::string numbers = "0";
  for (int device = 1; device < devices; ++device) numbers += fmt::format(",{}", device);
  return numbers;
}

int RunRepeat(const RepeatOptions& options, const MilaSurroundings& surroundings,
              const Programs& programs, std::ostream& out, std::ostream& messages) {
  CheckRepeatOptions(options);
  const auto say = [&](const std::string& text) {
    messages << "ddlbench: " + text + "\n" << std::flush;
  };
  const std::int64_t start = MicrosecondsNow();
  MilaRun run;
  run.suite = options.suite;
  run.name = options.name;
  run.version = surroundings.version;
  run.arch = options.arch;
  run.data = options.data_dir.empty() ? "synthetic" : options.data_dir;
  run.batch_size = options.batch_size;
  run.repeat = options.repeat;
  run.number = options.number;
  run.devices = options.devices;
  run.half = options.half;
  run.learning_rate = options.learning_rate;
  run.cpu_cores = surroundings.cpu_cores;
  run.run_id = options.run_id;
  run.jr_id = surroundings.jr_id;
  run.vcd = VisibleDevices(surroundings.visible_devices, options.devices);
  run.hostname = surroundings.hostname;
  constexpr std::int64_t kMillion = 1'000'000;
  run.start_time = start / kMillion;

  const fs::path stem = fs::path(options.folder) / MilaFileStem(run, start);
  MakeFolder(options.folder);
  const std::vector<std::string> command =
      RepeatCommand(options, programs, fs::path(options.folder) / "results" / stem.filename());
  say("+ " + launcher::QuoteCommand(command));
  const fs::path log_path = stem.string() + ".log";
  CommandRunner runner;
  RepeatProgress progress(log_path, options.batch_size, options.repeat, options.number, out);
  const int code = runner.Run(command, log_path, [&] { progress.Show(); });
  run.end_time = MicrosecondsNow() / kMillion;
  if (code != EX_OK) {
    say(fmt::format("{}: the run failed: exit code {}; the last line: {}", log_path.string(), code,
                    LastLineOf(log_path)));
    return code;
  }
  const RepeatLog log = ReadLog(log_path, static_cast<std::size_t>(options.repeat) *
                                              static_cast<std::size_t>(options.number));
  if (*log.steps.global_batch() != options.batch_size) {
    throw Error(EX_DATAERR, fmt::format("{}: a step had {} images, not {}", log_path.string(),
                                        *log.steps.global_batch(), options.batch_size));
  }
  run.gpu = log.gpu;
  const std::vector<double> observations =
      ObservationsOf(log.steps.steps(), run.batch_size, run.repeat, run.number);
  const MilaTimes times = TimesOf(observations, run.batch_size, run.number);
  const std::string report = FormatMilaReport(run, times, log.steps.steps());
  WriteFile(stem.string() + ".json", report);
  out << "\n"
      << FormatObservations(observations, times, static_cast<double>(run.batch_size) * run.number)
      << "\n"
      << Dashes() << report << "\n"
      << Dashes() << "Saving report to " << stem.string() << ".json\n"
      << std::flush;
  return EX_OK;
}

}  // namespace bench
