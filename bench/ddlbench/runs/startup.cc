// SPDX-License-Identifier: Apache-2.0

#include "bench/ddlbench/runs/startup.h"

#include <fmt/format.h>
#include <sysexits.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "bench/base/diagnostics.h"
#include "bench/base/statistics.h"
#include "bench/ddlbench/log_analysis/files.h"
#include "bench/run_log/log_entry.h"
#include "launcher/cli/quoting.h"
#include "launcher/protocol/launchers.h"
#include "support/number.h"
#include "support/quoting.h"
#include "trainer/core/error.h"

namespace bench {
namespace {

namespace fs = std::filesystem;
using trainer::Error;

constexpr char kShim[] = "ddlrun-rank";
constexpr char kProgram[] = "true";
// Slurm tidies up after a step when srun has ended, which must not be on the next one's bill.
constexpr std::chrono::milliseconds kPauseAfterStep(300);

std::string NameOfFile(const std::string& path) { return fs::path(path).filename().string(); }

std::string TextOf(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The line that begins with "+ ", without that, and what follows it.
std::pair<std::string, std::string> CommandLineOf(const std::string& printed) {
  std::size_t start = printed.starts_with("+ ") ? 0 : printed.find("\n+ ");
  if (start == std::string::npos) {
    throw Error(EX_UNAVAILABLE, "ddlrun --dry-run printed no command");
  }
  start = printed.find("+ ", start) + 2;
  const std::size_t end = std::min(printed.find('\n', start), printed.size());
  return {printed.substr(start, end - start), printed.substr(end)};
}

// The launcher whose program is `program`; null where there is none.
const launcher::LauncherTraits* LauncherWith(const std::string& program) {
  const auto* const found =
      std::ranges::find(launcher::kLaunchers, program, &launcher::LauncherTraits::program);
  return found == std::end(launcher::kLaunchers) || found->is_direct ? nullptr : found;
}

// "  (and so for the other 3)": 4 commands.
int CommandsOf(std::string_view rest) {
  constexpr std::string_view kOthers = "(and so for the other ";
  const std::size_t at = rest.find(kOthers);
  if (at == std::string_view::npos) return 1;
  const std::string_view number = rest.substr(at + kOthers.size());
  return 1 + static_cast<int>(NumberOf(number.substr(0, number.find(')'))).value_or(0));
}

// As many ranks, without the files and variables that ddlrun gives mpirun.
std::vector<std::string> BareMpirun(const launcher::LauncherTraits& launcher,
                                    const std::vector<std::string>& words) {
  std::vector<std::string> bare = {words.front()};
  constexpr char kAsRoot[] = "--allow-run-as-root";
  if (std::find(words.begin(), words.end(), kAsRoot) != words.end()) bare.emplace_back(kAsRoot);
  if (launcher.is_open_mpi) bare.emplace_back("--oversubscribe");
  const auto count = std::find(words.begin(), words.end(), "-n");
  if (words.end() - count > 1) bare.insert(bare.end(), count, count + 2);
  bare.emplace_back(kProgram);
  return bare;
}

std::string RowOf(const char* name, const std::vector<double>& values) {
  const Statistics all = StatisticsOf(values);
  return fmt::format("| {:<7} | {:<9.2f} | {:<9.2f} | {:<9.2f} | {:<9.2f} | {:<9.2f} |\n", name,
                     MedianOf(values), all.mean, all.sd, all.min, all.max);
}

}  // namespace

void CheckStartupOptions(const StartupOptions& options) {
  constexpr int kMax = 100'000;
  if (options.ranks < 0 || options.ranks > kMax) {
    throw Error(EX_USAGE, fmt::format("--ranks={} must be from 1 to {}; without it, as many as "
                                      "ddlrun starts",
                                      options.ranks, kMax));
  }
  RequireRange("--rounds", options.rounds, 1, kMax);
}

std::vector<std::string> StartupCommand(const StartupOptions& options, const Programs& programs,
                                        const std::vector<std::string>& more) {
  std::vector<std::string> command = {programs.ddlrun};
  if (options.ranks > 0) command.insert(command.end(), {"-n", std::to_string(options.ranks)});
  command.insert(command.end(), options.ddlrun.begin(), options.ddlrun.end());
  command.insert(command.end(), more.begin(), more.end());
  command.emplace_back(kProgram);
  return command;
}

BareStart BareStartOf(const std::string& printed) {
  const auto [line, rest] = CommandLineOf(printed);
  std::vector<std::string> words = launcher::SplitOnWhitespace(line);
  const std::string first = words.empty() ? "" : NameOfFile(words.front());
  BareStart start;
  if (first == kShim) {
    start.by = "fork";
    start.commands.assign(static_cast<std::size_t>(CommandsOf(rest)), Command{.argv = {kProgram}});
    return start;
  }
  const launcher::LauncherTraits* const launcher = LauncherWith(first);
  if (launcher != nullptr && launcher->has_daemons) {
    start.by = first;
    start.commands = {{.argv = BareMpirun(*launcher, words)}};
    return start;
  }
  const auto shim = std::find_if(words.begin(), words.end(),
                                 [](const std::string& word) { return NameOfFile(word) == kShim; });
  if (launcher == nullptr || shim == words.end() || CommandsOf(rest) != 1) {
    throw Error(EX_CONFIG,
                "ranks are started by several '" + first +
                    "' here; ddlbench startup compares with one: take nodes of one kind");
  }
  words.erase(shim, words.end());
  // The list of hosts is in a run directory, which a dry run does not make.
  std::erase_if(words, [](const std::string& word) {
    return word.starts_with("--distribution=") || word.starts_with("--nodelist=");
  });
  words.emplace_back(kProgram);
  start.by = first;
  start.commands = {{.argv = words}};
  return start;
}

std::string FormatStartup(const StartupTimes& times) {
  std::vector<double> added;
  for (std::size_t i = 0; i < times.bare.size(); ++i) {
    added.push_back(times.ddlrun[i] - times.bare[i]);
  }
  return "| ms      | median    | mean      | sd        | min       | max       |\n"
         "| ------- | --------- | --------- | --------- | --------- | --------- |\n" +
         RowOf("bare", times.bare) + RowOf("ddlrun", times.ddlrun) + RowOf("added", added);
}

int RunStartup(const StartupOptions& options, const Programs& programs, std::ostream& out,
               std::ostream& messages) {
  CheckStartupOptions(options);
  const ScratchDirectory scratch("ddlbench");
  const fs::path output = scratch.path() / "output";
  CommandRunner runner;
  // Milliseconds from here to the end of all.
  const auto timed = [&](const std::vector<Command>& commands) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<int> codes = runner.RunAll(commands);
    const auto end = std::chrono::steady_clock::now();
    for (const int code : codes) {
      if (code == EX_OK || runner.StopSignal() != 0) continue;
      messages << TextOf(output) << std::flush;
      throw Error(EX_UNAVAILABLE, fmt::format("exit code {} of: {}", code,
                                              support::QuoteCommand(commands.front().argv)));
    }
    return std::chrono::duration<double, std::milli>(end - start).count();
  };
  const auto to_output = [&](std::vector<Command> commands) {
    for (Command& command : commands) command.output = output;
    return commands;
  };
  const auto ddlrun = [&](const std::vector<std::string>& more) {
    return to_output({{.argv = StartupCommand(options, programs, more)}});
  };
  timed(ddlrun({"--dry-run"}));
  if (const int signal = runner.StopSignal(); signal != 0) return 128 + signal;
  const BareStart found = BareStartOf(TextOf(output));
  const std::vector<Command> bare = to_output(found.commands);
  out << "bare: " << support::QuoteCommand(bare.front().argv)
      << (bare.size() > 1 ? fmt::format(", {} at once", bare.size()) : "") << " (" << found.by
      << "); " << support::Counted(options.rounds, "round") << "\n\n"
      << std::flush;
  StartupTimes times;
  const bool is_step = launcher::TraitsOf(found.by.c_str()).makes_step;
  for (int round = 0; round <= options.rounds; ++round) {  // the first warms up
    if (is_step) std::this_thread::sleep_for(kPauseAfterStep);
    const double bare_time = timed(bare);
    if (is_step) std::this_thread::sleep_for(kPauseAfterStep);
    const double ddlrun_time = timed(ddlrun({}));
    if (const int signal = runner.StopSignal(); signal != 0) return 128 + signal;
    if (round == 0) continue;
    times.bare.push_back(bare_time);
    times.ddlrun.push_back(ddlrun_time);
  }
  out << FormatStartup(times) << std::flush;
  return EX_OK;
}

}  // namespace bench
