// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/sweep_run.h"

#include <fmt/format.h>
#include <sysexits.h>

#include <algorithm>
#include <system_error>

#include "bench/ddlbench/log_analysis/extract.h"
#include "bench/ddlbench/log_analysis/files.h"
#include "bench/ddlbench/runs/command_runner.h"
#include "support/quoting.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

namespace fs = std::filesystem;
using trainer::Error;

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
