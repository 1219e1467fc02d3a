// SPDX-License-Identifier: Apache-2.0
//
// The command line of bede-mpirun, as that of the wrapper of this name on Bede
// (N8-CIR-Bede/documentation, usage/index.rst):
//
//   bede-mpirun [--bede-par RANKS[:THREADS]] mpirun-options program arguments
//
// Every version of mpirun has other options, and only mpirun knows where they end and the program
// begins.  So the options and the program are passed to it as they are.  Pure.

#pragma once

#include <string>
#include <vector>

namespace launcher {

enum class RankShare { kNode, kGpu, kCore, kHardwareThread };  // 1ppn, 1ppg, 1ppc, 1ppt
enum class ThreadShare { kCores, kHardwareThreads, kOne };     // 1tpc, 1tpt, none

struct BedePar {
  RankShare ranks = RankShare::kCore;
  ThreadShare threads = ThreadShare::kHardwareThreads;
  bool are_threads_requested =
      false;  // false: OMP_NUM_THREADS is not changed if the user has set it
};

struct BedeOptions {
  BedePar par;
  bool dry_run = false;
  bool help = false;
  bool version = false;
  std::vector<std::string> mpirun_args;  // mpirun's options and the program, verbatim
};

// The options that are not those of mpirun, for --help, the manual page and the completion.
struct BedeOptionSpec {
  const char* name = "";      // with its dashes
  const char* argument = "";  // "" for a switch
  const char* help = "";
  std::vector<std::string> choices = {};  // of the argument
};
std::vector<BedeOptionSpec> BedeOptionTable();

// Reads "1ppg" or "1ppn:none".  Throws LaunchError(EX_USAGE), which lists the valid names.
BedePar ParseBedePar(const std::string& text);

// The inverse, "1ppc:1tpt".
std::string FormatBedePar(const BedePar& par);

// `arguments` are those of the program without its own name.  The first --bede-par and the first
// --bede-dry-run are taken wherever they stand, --help and --version only as the first argument.
// Throws LaunchError(EX_USAGE) when a value or the program is missing.
BedeOptions ParseBedeOptions(const std::vector<std::string>& arguments);

// What --help prints.
std::string BedeHelpText();

}  // namespace launcher
