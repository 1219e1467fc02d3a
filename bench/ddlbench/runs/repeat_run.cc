// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <sysexits.h>

#include <memory>
#include <string_view>

#include "bench/ddlbench/log_analysis/files.h"
#include "bench/ddlbench/runs/repeat.h"
#include "bench/microbenchmarks/batch_clock.h"
#include "bench/microbenchmarks/loader.h"
#include "bench/run_log/log_lines.h"
#include "support/quoting.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

namespace fs = std::filesystem;
using trainer::Error;

constexpr std::int64_t kMillion = 1'000'000;

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
