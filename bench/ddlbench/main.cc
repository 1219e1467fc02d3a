// SPDX-License-Identifier: Apache-2.0
//
// ddlbench: measures trainings, and makes tables of what their logs say.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "bench/ddlbench/compare.h"
#include "bench/ddlbench/complaints.h"
#include "bench/ddlbench/extract.h"
#include "bench/ddlbench/options.h"
#include "bench/ddlbench/repeat.h"
#include "bench/ddlbench/sweep_run.h"
#include "support/spelling.h"
#include "trainer/core/error.h"

namespace {

using bench::BenchCommand;
using bench::BenchOptions;
using trainer::Error;

// "unknown argument --step; did you mean --steps?"
std::string DescribeUnknown(const std::string& argument, const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_lnames().empty()) known.push_back("--" + option->get_lnames().front());
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    known.push_back(command->get_name());
  }
  const std::string nearest =
      support::NearestSpelling(argument.substr(0, argument.find('=')), known);
  return "unknown argument " + argument +
         (nearest.empty() ? " (ddlbench --help lists all)" : "; did you mean " + nearest + "?");
}

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

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bench::MilaSurroundings LookAround() {
  bench::MilaSurroundings surroundings;
  surroundings.version = DDLRUN_VERSION;
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) == 0) surroundings.hostname = host;
  surroundings.visible_devices = Variable("CUDA_VISIBLE_DEVICES");
  surroundings.cpu_cores = static_cast<int>(std::thread::hardware_concurrency());
  surroundings.jr_id = std::atoi(Variable("SLURM_JOB_ID").c_str());
  return surroundings;
}

int RunCommand(const BenchOptions& options) {
  bench::Complaints complaints([](const std::string& text) {
    std::cerr << "ddlbench: " + text + "\n" << std::flush;
  });
  switch (options.command) {
    case BenchCommand::kSweep:
      return bench::RunSweep(options.sweep, FindPrograms(), std::cout, std::cerr);
    case BenchCommand::kExtract:
      std::cout << bench::Extract(options.extract, complaints) << std::flush;
      return complaints.exit_code();
    case BenchCommand::kRepeat:
      return bench::RunRepeat(options.repeat, LookAround(), FindPrograms(), std::cout, std::cerr);
    case BenchCommand::kCompare:
      std::cout << bench::Compare(options.compare, complaints) << std::flush;
      return complaints.exit_code();
    case BenchCommand::kNone:
      break;
  }
  throw Error(EX_USAGE, "a command is missing: sweep, extract, repeat or compare");
}

int Run(const std::vector<std::string>& arguments) {
  // What stands behind "--" is ddltraind's.
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> own(arguments.begin(), dashes);
  BenchOptions options;
  if (dashes != arguments.end()) options.sweep.trainer.assign(dashes + 1, arguments.end());
  options.repeat.trainer = options.sweep.trainer;
  CLI::App app("Measures trainings, and makes tables of what their logs say.", "ddlbench");
  bench::DescribeOptions(app, options);
  app.allow_extras();
  for (CLI::App* sub : app.get_subcommands({})) sub->allow_extras();
  try {
    std::reverse(own.begin(), own.end());  // CLI11 wants it so
    app.parse(own);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    throw Error(EX_USAGE, std::string(error.what()) + " (ddlbench --help lists the options)");
  }
  const bool has_command = options.command != BenchCommand::kNone;
  const CLI::App& chosen = has_command ? *app.get_subcommands().front() : app;
  const std::vector<std::string> unknown = chosen.remaining();
  if (!unknown.empty()) throw Error(EX_USAGE, DescribeUnknown(unknown.front(), chosen));
  const bool starts_trainings =
      options.command == BenchCommand::kSweep || options.command == BenchCommand::kRepeat;
  if (has_command && !starts_trainings && dashes != arguments.end()) {
    throw Error(EX_USAGE, "only ddlbench sweep and repeat take options of ddltraind behind --");
  }
  const int code = RunCommand(options);
  if (!std::cout.flush()) throw Error(EX_OSERR, "standard output cannot be written");
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run({argv + 1, argv + argc});
  } catch (const Error& error) {
    std::fprintf(stderr, "ddlbench: %s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ddlbench: %s\n", error.what());
    return EX_SOFTWARE;
  }
}
