// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/repeat.h"

#include <fmt/format.h>
#include <sysexits.h>

#include <chrono>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>

#include "bench/base/diagnostics.h"
#include "bench/ddlbench/log_analysis/files.h"
#include "bench/microbenchmarks/loader.h"
#include "bench/run_log/log_lines.h"
#include "support/quoting.h"
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
  RequireRange("--copies", options.copies, 1, kMaxCopies);
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

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMillion = 1'000'000;

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

// What a log says, as far as it can be read.
struct RepeatLog {
  RunSteps steps;
  std::string gpu;
  std::string problem;  // "PATH:LINE: why it is not whole"; "" if it is
};

RepeatLog ReadLog(const fs::path& path, std::size_t needed) {
  RepeatLog log;
  LogLines lines(path);
  LogLine line;
  while (lines.Next(line) && line.is_whole) {
    try {
      log.steps.Add(line.text);
    } catch (const Error& error) {
      log.problem = fmt::format("{}:{}: {}", path.string(), line.number, error.what());
      return log;
    }
    if (log.gpu.empty()) log.gpu = GpuOf(line.text);
  }
  if (log.steps.steps().size() < needed || !log.steps.global_batch()) {
    log.problem = fmt::format("{}:{}: the log ends after {} steps of {}", path.string(),
                              line.number, log.steps.steps().size(), needed);
  }
  return log;
}

// One training that is timed.
class TimedTraining {
 public:
  TimedTraining(const RepeatOptions& options, const MilaSurroundings& surroundings,
                const Programs& programs, int copy, std::ostream& out)
      : options_(options) {
    outcome_.start = MicrosecondsNow();
    outcome_.run = DescribeMilaRun(options, surroundings, copy);
    outcome_.run.start_time = outcome_.start / kMillion;
    const fs::path directory = options.directory;
    const std::string stem = MilaFileStem(outcome_.run, outcome_.start);
    log_ = directory / (stem + ".log");
    command_.argv = RepeatCommand(options, programs, directory / "results" / stem);
    command_.output = log_;
    std::string prefix;
    if (options.copies > 1) {
      command_.variables = {{"CUDA_VISIBLE_DEVICES",
                             DeviceOfCopy(surroundings.visible_devices, copy, options.copies)}};
      command_.cpus = CpusOfCopy(surroundings.cpus, copy, options.copies);
      prefix = "D" + outcome_.run.vcd + " ";
    }
    progress_ = std::make_unique<RepeatProgress>(log_, options.batch_size, options.repeat,
                                                 options.number, out, prefix);
  }

  const Command& command() const { return command_; }
  void ShowProgress() { progress_->Show(); }

  // Of a run that has ended with `code`: its outcome is known then.  Returns `code`, or EX_DATAERR.
  int End(int code, const std::function<void(const std::string&)>& say) {
    MilaRun& run = outcome_.run;
    run.end_time = MicrosecondsNow() / kMillion;
    RepeatLog log = ReadLog(log_, static_cast<std::size_t>(options_.repeat) *
                                      static_cast<std::size_t>(options_.number));
    if (code != EX_OK) {
      log.problem = fmt::format("{}: the run failed: exit code {}; the last line: {}",
                                log_.string(), code, LastLineOf(log_));
    } else if (log.problem.empty() && *log.steps.global_batch() != options_.batch_size) {
      log.problem = fmt::format(
          "{}: a step had {} images, not {}: leave out --batch_size and --accumulate behind --, or "
          "give both so that it has as many",
          log_.string(), *log.steps.global_batch(), options_.batch_size);
    }
    run.completed = log.problem.empty();
    run.gpu = log.gpu;
    outcome_.steps = log.steps.steps();
    const auto ended = static_cast<int>(outcome_.steps.size()) / options_.number;
    outcome_.observations = ObservationsOf(outcome_.steps, run.batch_size,
                                           std::min(ended, options_.repeat), run.number);
    if (run.completed) return EX_OK;
    say(log.problem);
    const fs::path failed =
        fs::path(options_.directory) / (MilaFileStem(run, outcome_.start) + ".log");
    Rename(log_, failed);
    return code != EX_OK ? code : EX_DATAERR;
  }

  const RepeatOutcome& outcome() const { return outcome_; }

 private:
  const RepeatOptions& options_;
  RepeatOutcome outcome_;
  fs::path log_;
  Command command_;
  std::unique_ptr<RepeatProgress> progress_;
};

int RunTrainings(const RepeatOptions& options, const MilaSurroundings& surroundings,
                 const Programs& programs, std::ostream& out, std::ostream& messages) {
  const auto say = [&](const std::string& text) {
    messages << "ddlbench: " + text + "\n" << std::flush;
  };
  MakeDirectory(options.directory);
  std::vector<std::unique_ptr<TimedTraining>> trainings;
  std::vector<Command> commands;
  for (int copy = 0; copy < options.copies; ++copy) {
    trainings.push_back(
        std::make_unique<TimedTraining>(options, surroundings, programs, copy, out));
    commands.push_back(trainings.back()->command());
    say("+ " + support::QuoteCommand(commands.back().argv));
  }
  CommandRunner runner;
  const std::vector<int> codes = runner.RunAll(commands, [&] {
    for (const auto& training : trainings) training->ShowProgress();
  });
  int first_failure = EX_OK;
  std::vector<RepeatOutcome> outcomes;
  out << "\n";
  for (std::size_t i = 0; i < trainings.size(); ++i) {
    const int code = trainings[i]->End(codes[i], say);
    if (first_failure == EX_OK) first_failure = code;
    const RepeatOutcome& outcome = outcomes.emplace_back(trainings[i]->outcome());
    const fs::path report = WriteMilaReport(outcome, options.directory);
    if (code != EX_OK) {
      say("what there is of it is in " + report.string());
    } else if (options.copies == 1) {
      out << FormatObservations(outcome) << "\n" << FormatSaved(outcome, report);
    } else {
      out << FormatSaved(outcome, report);
    }
  }
  if (options.copies > 1) out << "\n" << FormatMemcpy(outcomes);
  out << std::flush;
  return first_failure;
}

// The input alone, in this process.
int RunLoaderOnly(const RepeatOptions& options, const MilaSurroundings& surroundings,
                  std::ostream& out, std::ostream& messages) {
  LoaderOptions loader;
  loader.data_dir = options.data_dir;
  loader.batch_size = options.batch_size;
  RepeatOutcome outcome;
  outcome.start = MicrosecondsNow();
  outcome.run = DescribeMilaRun(options, surroundings, 0);
  outcome.run.start_time = outcome.start / kMillion;
  MakeDirectory(options.directory);
  std::string problem;
  int code = EX_OK;
  try {
    BatchClock clock(RecordOptions(loader, ThreadsForCores(), /*rank=*/0, /*ranks=*/1));
    double counted = 0;
    for (int i = 0; i < options.repeat; ++i) {
      const double seconds = clock.Take(options.number);
      outcome.observations.push_back(seconds);
      const int count = i + 1 - kSkippedObservations;
      if (count > 0) counted += seconds;
      out << FormatEta(i, options.repeat, count > 0 ? counted / count : seconds, std::nullopt)
          << "\n"
          << std::flush;
    }
  } catch (const Error& error) {
    problem = error.what();
    code = error.exit_code();
    outcome.run.completed = false;
  }
  outcome.run.end_time = MicrosecondsNow() / kMillion;
  const fs::path report = WriteMilaReport(outcome, options.directory);
  if (!problem.empty()) {
    messages << "ddlbench: " + problem + "\nddlbench: what there is of it is in " +
                    report.string() + "\n"
             << std::flush;
    return code;
  }
  out << "\n" << FormatObservations(outcome) << "\n" << FormatSaved(outcome, report) << std::flush;
  return EX_OK;
}

}  // namespace

int RunRepeat(const RepeatOptions& given, const MilaSurroundings& surroundings,
              const Programs& programs, std::ostream& out, std::ostream& messages) {
  const RepeatOptions options = WithMilaDefaults(given, surroundings.visible_devices);
  CheckRepeatOptions(options);
  return DescribeMilaRun(options, surroundings, 0).is_loader
             ? RunLoaderOnly(options, surroundings, out, messages)
             : RunTrainings(options, surroundings, programs, out, messages);
}

}  // namespace bench
