// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/sweep.h"

#include <fmt/format.h>
#include <sysexits.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "bench/ddlbench/log_analysis/dlperf.h"
#include "bench/ddlbench/log_analysis/extract.h"
#include "bench/ddlbench/log_analysis/files.h"
#include "support/quoting.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

using trainer::Error;

constexpr char kSynthetic[] = "synthetic";
constexpr char kReal[] = "real";

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

void RequireNoRepetition(const std::vector<std::string>& words, const std::string& option) {
  std::set<std::string> seen;
  for (const std::string& word : words) {
    if (!seen.insert(word).second) throw Error(EX_USAGE, option + " has " + word + " twice");
  }
  if (words.empty()) throw Error(EX_USAGE, option + " is empty");
}

std::vector<Case> CasesOf(const SweepOptions& options) {
  RequireNoRepetition(options.cases, "--cases");
  std::vector<Case> cases;
  for (const std::string& text : options.cases) {
    const auto at = ParseCase(text);
    if (!at) {
      throw Error(EX_USAGE,
                  "--cases: '" + text + "' does not name nodes and GPUs per node, such as 2n8g");
    }
    cases.push_back(*at);
  }
  return cases;
}

std::vector<std::string> DataOf(const SweepOptions& options) {
  std::vector<std::string> data = options.data;
  if (data.empty()) {
    data = {kSynthetic};
    if (!options.data_dir.empty()) data.emplace_back(kReal);
  }
  RequireNoRepetition(data, "--data");
  const bool wants_real = std::find(data.begin(), data.end(), kReal) != data.end();
  if (wants_real && options.data_dir.empty()) {
    throw Error(EX_USAGE, "--data=real needs --data_dir DIR, the directory of the images");
  }
  if (!wants_real && !options.data_dir.empty()) {
    throw Error(EX_USAGE, "--data_dir is for --data=real, which --data leaves out");
  }
  return data;
}

std::int64_t BatchOf(const SweepOptions& options, std::size_t precision) {
  return options.batches.size() == 1 ? options.batches.front() : options.batches[precision];
}

// "r50" for resnet50, as DLPerf has it; an underscore would end the name.
std::string ModelName(const std::string& arch) {
  std::string name = arch.starts_with("resnet") ? "r" + arch.substr(6) : arch;
  std::erase(name, '_');
  return name;
}

// DLPerf's options for a precision.
std::vector<std::string> PrecisionOptions(const std::string& precision) {
  if (precision == "fp16" || precision == "bf16") {
    return {"--precision=" + precision, "--use_static_loss_scaling", "--loss_scale=128"};
  }
  if (precision == "amp") {
    return {"--precision=fp32", "--use_tf_amp", "--use_static_loss_scaling", "--loss_scale=128"};
  }
  return {"--precision=" + precision};
}

void RequirePositive(std::int64_t number, const std::string& option) {
  if (number < 1) throw Error(EX_USAGE, option + " must be 1 or more");
}

void CheckNumbers(const SweepOptions& options) {
  for (const std::int64_t batch : options.batches) RequirePositive(batch, "--batch_size");
  if (options.batches.size() != 1 && options.batches.size() != options.precisions.size()) {
    throw Error(EX_USAGE, "--batch_size must be one number, or one for each of --precision=" +
                              Joined(options.precisions));
  }
  RequirePositive(options.repeats, "--repeats");
  RequirePositive(options.at_once, "--at_once");
  if (options.steps <= kUnloggedSteps) {
    throw Error(EX_USAGE, "--steps must be more than 20: the first 20 are not measured");
  }
}

}  // namespace

std::vector<Measurement> MatrixOf(const SweepOptions& options) {
  CheckNumbers(options);
  const std::vector<Case> cases = CasesOf(options);
  const std::vector<std::string> data = DataOf(options);
  RequireNoRepetition(options.precisions, "--precision");
  std::vector<Measurement> matrix;
  for (int repeat = 1; repeat <= options.repeats; ++repeat) {
    for (std::size_t p = 0; p < options.precisions.size(); ++p) {
      for (const std::string& images : data) {
        for (const Case& at : cases) {
          Measurement one;
          one.at = at;
          one.name = {ModelName(options.arch), BatchOf(options, p), options.precisions[p], repeat};
          one.is_real = images == kReal;
          const std::string stem = FileNameOf(one.name).substr(0, FileNameOf(one.name).size() - 4);
          const std::filesystem::path directory =
              std::filesystem::path(options.directory) /
              ("bz" + std::to_string(one.name.batch) + "_" + one.name.precision + "_" + images) /
              NameOf(at);
          one.log = directory / FileNameOf(one.name);
          one.results_dir = directory / "results" / stem;
          matrix.push_back(one);
        }
      }
    }
  }
  if (options.only < 0 || options.only > static_cast<int>(matrix.size())) {
    throw Error(EX_USAGE, "--only=" + std::to_string(options.only) +
                              ": there are measurements 1 to " + std::to_string(matrix.size()));
  }
  return matrix;
}

std::vector<std::string> CommandOf(const Measurement& measurement, const SweepOptions& options,
                                   const Programs& programs) {
  const RunName& name = measurement.name;
  std::vector<std::string> command = {programs.ddlrun, "-n", std::to_string(measurement.at.ranks()),
                                      "--ranks-per-node", std::to_string(measurement.at.gpus)};
  command.insert(command.end(), options.ddlrun.begin(), options.ddlrun.end());
  const std::vector<std::string> trainer = {programs.ddltraind,
                                            "--mode=training_benchmark",
                                            "--arch=" + options.arch,
                                            "--iter_unit=batch",
                                            "--num_iter=" + std::to_string(options.steps),
                                            "--warmup_steps=" + std::to_string(kUnloggedSteps),
                                            "--batch_size=" + std::to_string(name.batch),
                                            "--results_dir=" + measurement.results_dir.string()};
  command.insert(command.end(), trainer.begin(), trainer.end());
  const std::vector<std::string> precision = PrecisionOptions(name.precision);
  command.insert(command.end(), precision.begin(), precision.end());
  if (measurement.is_real) command.push_back("--data_dir=" + options.data_dir);
  command.insert(command.end(), options.trainer.begin(), options.trainer.end());
  return command;
}

std::string JobScript(const SweepOptions& options, const Programs& programs) {
  std::vector<std::string> command = {programs.ddlbench,
                                      "sweep",
                                      "--cases=" + Joined(options.cases),
                                      "--precision=" + Joined(options.precisions),
                                      "--arch=" + options.arch,
                                      "--repeats=" + std::to_string(options.repeats),
                                      "--steps=" + std::to_string(options.steps)};
  std::vector<std::string> batches;
  for (const std::int64_t batch : options.batches) batches.push_back(std::to_string(batch));
  command.push_back("--batch_size=" + Joined(batches));
  if (!options.data.empty()) command.push_back("--data=" + Joined(options.data));
  if (!options.data_dir.empty()) command.push_back("--data_dir=" + options.data_dir);
  for (const std::string& option : options.ddlrun) command.push_back("--ddlrun=" + option);
  std::vector<std::string> rest = {options.directory};
  if (!options.trainer.empty()) rest.emplace_back("--");
  rest.insert(rest.end(), options.trainer.begin(), options.trainer.end());
  return "#!/bin/bash\n"
         "# Made by ddlbench sweep --submit: a task of the array makes one measurement.\n"
         "exec " +
         support::QuoteCommand(command) + " --only=\"$SLURM_ARRAY_TASK_ID\" " +
         support::QuoteCommand(rest) + "\n";
}

std::vector<std::string> SubmitCommand(const SweepOptions& options, std::size_t count,
                                       const std::filesystem::path& script) {
  const std::vector<Case> cases = CasesOf(options);
  int nodes = 0;
  int gpus = 0;
  for (const Case& at : cases) {
    nodes = std::max(nodes, at.nodes);
    gpus = std::max(gpus, at.gpus);
  }
  std::vector<std::string> command = {
      "sbatch",
      "--job-name=ddlbench",
      "--array=1-" + std::to_string(count) + "%" + std::to_string(options.at_once),
      "--nodes=" + std::to_string(nodes),
      "--gres=gpu:" + std::to_string(gpus),
      "--output=" + (std::filesystem::path(options.directory) / "slurm-%A_%a.out").string()};
  command.insert(command.end(), options.sbatch.begin(), options.sbatch.end());
  command.push_back(script.string());
  return command;
}

namespace {

namespace fs = std::filesystem;

std::string Described(const Measurement& one) {
  return fmt::format("{}, {}, {} images, batch {}, repeat {}", NameOf(one.at), one.name.precision,
                     one.is_real ? "real" : "synthetic", one.name.batch, one.name.repeat);
}

class Sweep {
 public:
  Sweep(const SweepOptions& options, const Programs& programs, std::ostream& out,
        std::ostream& messages)
      : options_(options),
        programs_(programs),
        out_(out),
        messages_(messages),
        matrix_(MatrixOf(options)),
        diagnostics_([this](const std::string& text) { Say(text); }) {}

  // What DLPerf's own scripts cannot read.
  void NoteLargeCases() {
    for (const std::string& text : options_.cases) {
      if (!FitsDlperf(ParseCase(text).value())) {
        diagnostics_.Note(text + ": DLPerf's own scripts read 9 nodes and 99 GPUs on each at most");
      }
    }
  }

  int DryRun() {
    for (std::size_t i = 0; i < matrix_.size(); ++i) {
      if (!IsWanted(i)) continue;
      out_ << fmt::format("{} {}\n", i + 1, Described(matrix_[i]));
      if (!options_.submit) PrintCommand(i);
    }
    if (options_.submit) {
      out_ << "+ " << support::QuoteCommand(Submission()) << "\n" << JobScript(options_, programs_);
    }
    return EX_OK;
  }

  int Submit() {
    WriteFile(ScriptPath(), JobScript(options_, programs_));
    const std::vector<std::string> command = Submission();
    Say("+ " + support::QuoteCommand(command));
    CommandRunner runner;
    const int code = runner.Run(command, "");
    if (code == EX_OK) {
      Say("when the array has ended: ddlbench extract " +
          support::QuoteCommand({options_.directory}));
    }
    return code;
  }

  int Run() {
    CommandRunner runner;
    int first_failure = EX_OK;
    for (std::size_t i = 0; i < matrix_.size(); ++i) {
      if (!IsWanted(i)) continue;
      const int code = MakeOne(i, runner);
      if (first_failure == EX_OK) first_failure = code;
      if (const int signal = runner.StopSignal(); signal != 0) {
        Say(fmt::format("stopped by signal {}; the same command measures the rest", signal));
        return 128 + signal;
      }
    }
    const bool has_all = std::all_of(matrix_.begin(), matrix_.end(),
                                     [](const Measurement& one) { return Exists(one.log); });
    if (has_all || options_.only == 0) PrintTables();
    return first_failure != EX_OK ? first_failure : diagnostics_.exit_code();
  }

 private:
  void Say(const std::string& text) { messages_ << "ddlbench: " << text << "\n" << std::flush; }

  bool IsWanted(std::size_t i) const {
    return options_.only == 0 || static_cast<std::size_t>(options_.only) == i + 1;
  }

  std::string NumberOf(std::size_t i) const {
    return fmt::format("[{}/{}] ", i + 1, matrix_.size());
  }

  fs::path ScriptPath() const { return fs::path(options_.directory) / "sweep.sbatch"; }

  std::vector<std::string> Submission() const {
    return SubmitCommand(options_, matrix_.size(), ScriptPath());
  }

  void PrintCommand(std::size_t i) {
    out_ << "+ " << support::QuoteCommand(CommandOf(matrix_[i], options_, programs_)) << " > "
         << support::QuoteCommand({matrix_[i].log.string()}) << "\n";
  }

  int MakeOne(std::size_t i, CommandRunner& runner) {
    const Measurement& one = matrix_[i];
    if (Exists(one.log)) {
      Say(NumberOf(i) + one.log.string() + " is there; delete it to measure it again");
      return EX_OK;
    }
    MakeDirectory(one.results_dir);
    std::error_code ignored;
    fs::remove(one.results_dir / "log.json", ignored);  // of a run that failed
    const std::vector<std::string> command = CommandOf(one, options_, programs_);
    Say(NumberOf(i) + Described(one));
    Say("+ " + support::QuoteCommand(command));
    const fs::path partial = one.log.string() + ".part";
    const int code = runner.Run(command, partial);
    if (code != EX_OK) return Fail(i, partial, code, fmt::format("exit code {}", code));
    const auto speed = ReadSpeed(partial, one.at, one.name, Window(), diagnostics_);
    if (!speed) return Fail(i, partial, EX_DATAERR, "its log is not whole");
    Rename(partial, one.log);
    Say(fmt::format("{}{}: {:.2f} images/s", NumberOf(i), one.log.string(), *speed));
    return EX_OK;
  }

  int Fail(std::size_t i, const fs::path& partial, int code, const std::string& why) {
    const fs::path failed = matrix_[i].log.string() + ".failed";
    Rename(partial, failed);
    Say(fmt::format("{}{}: the run failed: {}; the last line: {}", NumberOf(i), failed.string(),
                    why, LastLineOf(failed)));
    return code;
  }

  SpeedWindow Window() const {
    ExtractOptions extract;
    extract.train_batches = options_.steps;
    return WindowOf(extract);
  }

  void PrintTables() {
    ExtractOptions extract;
    extract.directories = {options_.directory};
    extract.train_batches = options_.steps;
    out_ << Extract(extract, diagnostics_) << std::flush;
  }

  const SweepOptions& options_;
  const Programs& programs_;
  std::ostream& out_;
  std::ostream& messages_;
  const std::vector<Measurement> matrix_;
  Diagnostics diagnostics_;
};

std::string WholePath(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  if (error) throw Error(EX_OSERR, path + ": the current directory: " + error.message());
  return whole.lexically_normal().string();
}

}  // namespace

int RunSweep(SweepOptions options, const Programs& programs, std::ostream& out,
             std::ostream& messages) {
  // Tasks of the array start in a directory that Slurm chooses.
  options.directory = WholePath(options.directory);
  if (!options.data_dir.empty()) options.data_dir = WholePath(options.data_dir);
  if (options.submit && options.only != 0) {
    throw Error(EX_USAGE, "--submit is for all measurements, --only for one: give one of the two");
  }
  Sweep sweep(options, programs, out, messages);
  sweep.NoteLargeCases();
  if (options.dry_run) return sweep.DryRun();
  return options.submit ? sweep.Submit() : sweep.Run();
}

}  // namespace bench
