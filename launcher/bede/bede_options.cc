// SPDX-License-Identifier: Apache-2.0

#include "launcher/bede/bede_options.h"

#include <array>
#include <utility>

#include "launcher/base/error.h"
#include "support/build.h"

namespace launcher {
namespace {

constexpr std::array<std::pair<const char*, RankShare>, 4> kRankShares = {{
    {"1ppn", RankShare::kNode},
    {"1ppg", RankShare::kGpu},
    {"1ppc", RankShare::kCore},
    {"1ppt", RankShare::kHardwareThread},
}};
constexpr std::array<std::pair<const char*, ThreadShare>, 3> kThreadShares = {{
    {"1tpc", ThreadShare::kCores},
    {"1tpt", ThreadShare::kHardwareThreads},
    {"none", ThreadShare::kOne},
}};

template <typename Table>
auto Find(const Table& table, const std::string& text, const std::string& name) {
  std::string names;
  for (const auto& [known, share] : table) {
    if (name == known) return share;
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  throw LaunchError(EX_USAGE, "--bede-par " + text + ": '" + name + "' is none of " + names +
                                  "; write --bede-par 1ppg:1tpc");
}

template <typename Table, typename Share>
std::string NameOf(const Table& table, Share wanted) {
  for (const auto& [name, share] : table) {
    if (share == wanted) return name;
  }
  return "";
}

// The column where the help text of an option starts.
constexpr std::size_t kHelpColumn = 30;

constexpr char kParOption[] = "--bede-par";
constexpr char kDryRunOption[] = "--bede-dry-run";

}  // namespace

std::vector<BedeOptionSpec> BedeOptionTable() {
  std::vector<std::string> shares;
  for (const auto& [ranks, rank_share] : kRankShares) shares.emplace_back(ranks);
  for (const auto& [ranks, rank_share] : kRankShares) {
    for (const auto& [threads, thread_share] : kThreadShares) {
      shares.push_back(std::string(ranks) + ":" + threads);
    }
  }
  return {
      {.name = kParOption,
       .argument = "RANKS[:THREADS]",
       .help = "how ranks and threads are shared out, see below [1ppc:1tpt]",
       .choices = shares},
      {.name = kDryRunOption, .help = "print the command and its files; start nothing"},
      {.name = "--help", .help = "as the first argument: print this text"},
      {.name = "--version", .help = "as the first argument: print the version"},
  };
}

BedePar ParseBedePar(const std::string& text) {
  BedePar par;
  const std::size_t colon = text.find(':');
  par.ranks = Find(kRankShares, text, text.substr(0, colon));
  if (colon != std::string::npos) {
    par.threads = Find(kThreadShares, text, text.substr(colon + 1));
    par.are_threads_requested = true;
  }
  return par;
}

std::string FormatBedePar(const BedePar& par) {
  return NameOf(kRankShares, par.ranks) + ":" + NameOf(kThreadShares, par.threads);
}

BedeOptions ParseBedeOptions(const std::vector<std::string>& arguments) {
  BedeOptions options;
  if (!arguments.empty() && (arguments[0] == "--help" || arguments[0] == "--version")) {
    (arguments[0] == "--help" ? options.help : options.version) = true;
    return options;
  }
  const std::string with_value = std::string(kParOption) + "=";
  bool par_is_given = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!par_is_given && word == kParOption) {
      if (i + 1 == arguments.size()) {
        throw LaunchError(EX_USAGE, "--bede-par needs a value: --bede-par 1ppc:1tpt");
      }
      options.par = ParseBedePar(arguments[++i]);
      par_is_given = true;
    } else if (!par_is_given && word.starts_with(with_value)) {
      options.par = ParseBedePar(word.substr(with_value.size()));
      par_is_given = true;
    } else if (!options.dry_run && word == kDryRunOption) {
      options.dry_run = true;
    } else {
      options.mpirun_args.push_back(word);
    }
  }
  if (options.mpirun_args.empty()) {
    throw LaunchError(EX_USAGE,
                      "no program given: bede-mpirun --bede-par 1ppc:1tpt [mpirun options] program "
                      "[arguments]");
  }
  return options;
}

std::string BedeHelpText() {
  std::string options;
  for (const BedeOptionSpec& option : BedeOptionTable()) {
    std::string line = "  " + std::string(option.name) + " " + option.argument;
    line.resize(kHelpColumn, ' ');
    options.append(line).append(option.help).append("\n");
  }
  return "usage: bede-mpirun [--bede-par RANKS[:THREADS]] [mpirun options] program [arguments]\n\n"
         "Starts a program by Open MPI's mpirun on all nodes of the Slurm job, or on this "
         "machine,\n"
         "with ranks and threads as the machine is made. Everything but the options below is\n"
         "handed to mpirun as it is, and counts over what bede-mpirun sets: -n 2 starts two "
         "ranks,\n"
         "--bind-to none leaves them unbound, -x OMP_NUM_THREADS=1 sets the threads.\n"
         "\nOptions:\n" +
         options +
         "\nRANKS is 1ppn (one rank per node, not bound), 1ppg (one per GPU, on cores near to "
         "it),\n"
         "1ppc (one per core) or 1ppt (one per hardware thread). THREADS is the OMP_NUM_THREADS "
         "of\n"
         "each rank: 1tpc (the number of its cores), 1tpt (of its hardware threads) or none (1);\n"
         "where it is left out, an OMP_NUM_THREADS that you have set stays.\n"
         "\nNodes are taken to be like this one. 1ppg maps and binds by a rankfile, which mpirun\n"
         "does not combine with --map-by, --rankfile or -npernode of your own.\n"
         "\nExit code: mpirun's, which is that of the first rank that failed; 64 usage, 69 no\n"
         "mpirun, 70 internal, 71 operating system, 78 configuration or allocation.\n" +
         support::HelpFooter() + "\n";
}

}  // namespace launcher
