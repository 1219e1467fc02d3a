// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/repeat.h"

#include <fmt/format.h>
#include <sysexits.h>

#include <chrono>
#include <exception>
#include <utility>

#include "bench/ddlbench/log_analysis/files.h"
#include "trainer/core/error.h"

namespace bench {

RepeatProgress::RepeatProgress(std::filesystem::path log, std::int64_t global_batch, int repeat,
                               int number, std::ostream& out, std::string prefix)
    : path_(std::move(log)),
      global_batch_(global_batch),
      repeat_(repeat),
      number_(number),
      out_(out),
      prefix_(std::move(prefix)) {}

void RepeatProgress::Show() noexcept {
  if (has_failed_) return;
  try {
    if (!lines_) lines_.emplace(path_, /*is_growing=*/true);
    for (LogLine line; lines_->Next(line);) {
      steps_.Add(line.text);
      const auto ended = static_cast<int>(steps_.steps().size()) / number_;
      if (ended > shown_ && shown_ < repeat_) ShowObservation();
    }
    out_ << std::flush;
  } catch (const std::exception&) {
    has_failed_ = true;  // what is wrong is said when the run has ended
  }
}

void RepeatProgress::ShowObservation() {
  const std::span<const RunStep> steps = steps_.steps();
  const auto number = static_cast<std::size_t>(number_);
  const double last = ObservationsOf(steps.last(number), global_batch_, 1, number_).front();
  const int counted = shown_ + 1 - kSkippedObservations;
  if (counted > 0) counted_seconds_ += last;
  const double seconds = counted > 0 ? counted_seconds_ / counted : last;
  out_ << prefix_ << FormatEta(shown_++, repeat_, seconds, steps.back().cross_entropy) << "\n";
}

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

namespace {

using trainer::Error;

bool IsLoader(const RepeatOptions& options) {
  return MilaBenchmarkOf(options.name).kind == MilaKind::kLoader;
}

// "0,1,2" -> its words; none of "".
std::vector<std::string> WordsOf(const std::string& visible) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : visible + ",") {
    if (c != ',') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(word);
      word.clear();
    }
  }
  return words;
}

bool IsNumbers(const std::string& visible) {
  return !visible.empty() && visible.find_first_not_of("0123456789,") == std::string::npos &&
         visible.front() != ',' && visible.back() != ',' && visible.find(",,") == std::string::npos;
}

void CheckCopies(const RepeatOptions& options) {
  constexpr int kMaxCopies = 1024;
  if (options.copies < 1 || options.copies > kMaxCopies) {
    throw Error(EX_USAGE,
                fmt::format("--copies={} must be from 1 to {}", options.copies, kMaxCopies));
  }
  if (options.copies == 1) return;
  if (options.devices != 1) {
    throw Error(EX_USAGE, fmt::format("--copies={} are trainings of one rank each: leave out "
                                      "--devices={}",
                                      options.copies, options.devices));
  }
  if (!options.ddlrun.empty()) {
    throw Error(EX_USAGE, "--copies are started without ddlrun: leave out --ddlrun");
  }
}

void CheckLoader(const RepeatOptions& options) {
  if (!IsLoader(options)) return;
  if (options.data_dir.empty()) {
    throw Error(EX_USAGE, "--name=loader needs --data_dir DIR: made-up images are not loaded");
  }
  if (options.copies > 1 || options.devices > 1 || !options.ddlrun.empty() ||
      !options.trainer.empty()) {
    throw Error(EX_USAGE,
                "--name=loader trains nothing: leave out --copies, --devices, --ddlrun and what "
                "stands behind --");
  }
}

}  // namespace

RepeatOptions WithMilaDefaults(RepeatOptions options, const std::string& visible) {
  const MilaBenchmark benchmark = MilaBenchmarkOf(options.name);
  if (options.batch_size == 0) options.batch_size = benchmark.batch_size;
  options.half = options.half || benchmark.half;
  if (options.devices == 0) {
    options.devices = 1;
    if (benchmark.kind == MilaKind::kDistributed) {
      options.devices = static_cast<int>(WordsOf(visible).size());
      if (options.devices == 0) {
        throw Error(EX_USAGE, fmt::format("--name={} is one training on all GPUs, and there is no "
                                          "CUDA_VISIBLE_DEVICES: --devices N says how many there "
                                          "are",
                                          options.name));
      }
    }
  }
  return options;
}

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
  CheckCopies(options);
  CheckLoader(options);
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
                                       const std::filesystem::path& results_dir) {
  std::vector<std::string> command;
  if (options.copies == 1) {
    command = {programs.ddlrun, "-n", std::to_string(options.devices)};
    command.insert(command.end(), options.ddlrun.begin(), options.ddlrun.end());
  }
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
  if (IsNumbers(visible)) return visible;
  std::string numbers = "0";
  for (int device = 1; device < devices; ++device) numbers += fmt::format(",{}", device);
  return numbers;
}

std::string DeviceOfCopy(const std::string& visible, int copy, int copies) {
  const std::vector<std::string> words = WordsOf(visible);
  if (words.empty()) return std::to_string(copy);
  if (words.size() < static_cast<std::size_t>(copies)) {
    throw Error(EX_USAGE, fmt::format("--copies={} need a GPU each, and CUDA_VISIBLE_DEVICES={} "
                                      "names {}",
                                      copies, visible, words.size()));
  }
  return words[static_cast<std::size_t>(copy)];
}

std::vector<int> CpusOfCopy(const std::vector<int>& cpus, int copy, int copies) {
  if (cpus.size() < static_cast<std::size_t>(copies)) return cpus;
  const auto bound = [&](int number) {
    return cpus.begin() + static_cast<std::ptrdiff_t>(cpus.size()) * number / copies;
  };
  return {bound(copy), bound(copy + 1)};
}

MilaRun DescribeMilaRun(const RepeatOptions& options, const MilaSurroundings& surroundings,
                        int copy) {
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
  run.run_id = options.run_id;
  run.jr_id = surroundings.jr_id;
  run.hostname = surroundings.hostname;
  run.is_loader = IsLoader(options);
  if (options.copies == 1) {
    run.cpu_cores = static_cast<int>(surroundings.cpus.size());
    run.vcd = VisibleDevices(surroundings.visible_devices, options.devices);
    return run;
  }
  run.cpu_cores = static_cast<int>(CpusOfCopy(surroundings.cpus, copy, options.copies).size());
  const std::string device = DeviceOfCopy(surroundings.visible_devices, copy, options.copies);
  run.vcd = IsNumbers(device) ? device : std::to_string(copy);
  return run;
}

}  // namespace bench
