// SPDX-License-Identifier: Apache-2.0
//
// ddlbench: measures trainings, and makes tables of what their logs say.

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "bench/base/diagnostics.h"
#include "bench/ddlbench/log_analysis/extract.h"
#include "bench/ddlbench/log_analysis/files.h"
#include "bench/ddlbench/log_analysis/mila_report.h"
#include "bench/ddlbench/log_analysis/variability.h"
#include "bench/ddlbench/options.h"
#include "bench/ddlbench/predict.h"
#include "bench/ddlbench/runs/repeat.h"
#include "bench/ddlbench/runs/startup.h"
#include "bench/ddlbench/runs/step.h"
#include "bench/ddlbench/runs/sweep.h"
#include "bench/microbenchmarks/all_reduce.h"
#include "bench/microbenchmarks/loader.h"
#include "bench/microbenchmarks/memcpy.h"
#include "bench/microbenchmarks/ranks.h"
#include "bench/report/report.h"
#include "support/number.h"
#include "support/quoting.h"
#include "support/standard_streams.h"
#include "trainer/core/error.h"

namespace {

using bench::BenchCommand;
using bench::BenchOptions;
using trainer::Error;

// The program of this name beside this one, else the one in PATH.
std::string Beside(const std::filesystem::path& self, const std::string& name) {
  const std::filesystem::path path = self.parent_path() / name;
  return ::access(path.c_str(), X_OK) == 0 ? path.string() : name;
}

bench::Programs FindPrograms() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return {error ? "ddlbench" : self.string(), Beside(self, "ddlrun"), Beside(self, "ddltraind")};
}

std::optional<std::string> EnvironmentVariable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

bench::MilaSurroundings LookAround() {
  bench::MilaSurroundings surroundings;
  surroundings.version = DDLRUN_VERSION;
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) == 0) surroundings.hostname = host;
  surroundings.visible_devices = EnvironmentVariable("CUDA_VISIBLE_DEVICES").value_or("");
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  ::sched_getaffinity(0, sizeof cpus, &cpus);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &cpus)) surroundings.cpus.push_back(cpu);
  }
  surroundings.jr_id =
      support::WholeNumber<int>(EnvironmentVariable("SLURM_JOB_ID").value_or("")).value_or(0);
  return surroundings;
}

int MeasureInput(const bench::LoaderOptions& options) {
  bench::CheckLoaderOptions(options);
  bench::Ranks ranks(EnvironmentVariable);
  return ranks.Run(
      [&] {
        const std::vector<bench::LoaderSpeeds> speeds = bench::MeasureLoader(options, ranks);
        const int size = ranks.communicator().size();
        if (ranks.is_root()) std::cout << bench::FormatLoader(options, speeds, size) << std::flush;
        return EX_OK;
      },
      std::cerr);
}

int MeasureAllReduces(const bench::AllReduceOptions& options) {
  bench::CheckAllReduceOptions(options);
  bench::Ranks ranks(EnvironmentVariable);
  return ranks.Run([&] { return bench::RunAllReduce(options, ranks, std::cout, std::cerr); },
                   std::cerr);
}

int MeasureMemcpy(const bench::MemcpyBenchOptions& options) {
  bench::CheckCopiesOptions(options);
  bench::Ranks ranks(EnvironmentVariable);
  return ranks.Run([&] { return bench::RunCopies(options, ranks, std::cout); }, std::cerr);
}

int RunReport(const bench::ReportOptions& options, bench::Diagnostics& diagnostics) {
  const bench::ReportTexts texts = bench::MakeReport(options, DDLRUN_VERSION, diagnostics);
  if (!texts.page_path.empty()) bench::WriteFile(texts.page_path, texts.page);
  std::cout << texts.printed << std::flush;
  if (!texts.page_path.empty()) std::cerr << "report written: " + texts.page_path + "\n";
  return diagnostics.exit_code();
}

int RunCommand(const BenchOptions& options) {
  bench::Diagnostics diagnostics([](const std::string& text) {
    std::cerr << "ddlbench: " + support::WithoutControls(text) + "\n" << std::flush;
  });
  switch (options.command) {
    case BenchCommand::kSweep:
      return bench::RunSweep(options.sweep, FindPrograms(), std::cout, std::cerr);
    case BenchCommand::kExtract:
      std::cout << bench::Extract(options.extract, diagnostics) << std::flush;
      return diagnostics.exit_code();
    case BenchCommand::kRepeat:
      return bench::RunRepeat(options.repeat, LookAround(), FindPrograms(), std::cout, std::cerr);
    case BenchCommand::kCompare:
      std::cout << bench::Compare(options.compare, diagnostics) << std::flush;
      return diagnostics.exit_code();
    case BenchCommand::kReport:
      return RunReport(options.report, diagnostics);
    case BenchCommand::kVariability:
      std::cout << bench::RunVariability(options.variability, diagnostics) << std::flush;
      return diagnostics.exit_code();
    case BenchCommand::kLoader:
      return MeasureInput(options.loader);
    case BenchCommand::kAllReduce:
      return MeasureAllReduces(options.all_reduce);
    case BenchCommand::kCopies:
      return MeasureMemcpy(options.copies);
    case BenchCommand::kStep:
      return bench::RunStepBench(options.step, FindPrograms(), std::cout, std::cerr);
    case BenchCommand::kStartup:
      return bench::RunStartup(options.startup, FindPrograms(), std::cout, std::cerr);
    case BenchCommand::kPredict:
      std::cout << bench::RunPredict(options.predict, diagnostics) << std::flush;
      return diagnostics.exit_code();
    case BenchCommand::kNone:
      break;
  }
  throw Error(EX_USAGE,
              "a command is missing: sweep, extract, repeat, compare, report, variability, loader, "
              "allreduce, copies, step, startup or predict");
}

void RequirePrinted() {
  if (!std::cout.flush()) throw Error(EX_OSERR, "standard output cannot be written");
}

int Run(const std::vector<std::string>& arguments) {
  // What stands behind "--" is ddltraind's.
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  const std::vector<std::string> own(arguments.begin(), dashes);
  BenchOptions options;
  if (dashes != arguments.end()) options.sweep.trainer.assign(dashes + 1, arguments.end());
  options.repeat.trainer = options.sweep.trainer;
  options.step.trainer = options.sweep.trainer;
  const support::Parsed parsed = support::Parse(bench::DescribeOptions(options), own);
  if (!parsed.answer.empty()) {
    std::cout << parsed.answer;
    RequirePrinted();
    return EX_OK;
  }
  const bool has_command = options.command != BenchCommand::kNone;
  const bool starts_trainings = options.command == BenchCommand::kSweep ||
                                options.command == BenchCommand::kRepeat ||
                                options.command == BenchCommand::kStep;
  if (has_command && !starts_trainings && dashes != arguments.end()) {
    throw Error(EX_USAGE,
                "only ddlbench sweep, repeat and step take options of ddltraind behind --");
  }
  const int code = RunCommand(options);
  RequirePrinted();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  support::OpenStandardStreams();
  try {
    return Run({argv + 1, argv + argc});
  } catch (const Error& error) {
    std::fprintf(stderr, "ddlbench: %s\n", support::WithoutControls(error.what()).c_str());
    return error.exit_code();
  } catch (const support::UsageError& error) {
    std::fprintf(stderr, "ddlbench: %s\n", support::WithoutControls(error.what()).c_str());
    return EX_USAGE;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ddlbench: %s\n", support::WithoutControls(error.what()).c_str());
    return EX_SOFTWARE;
  }
}
