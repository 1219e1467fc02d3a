// SPDX-License-Identifier: Apache-2.0
//
// The command line of bede-mpirun, as that of the wrapper of this name on Bede
// (N8-CIR-Bede/documentation, usage/index.rst):
//
//   bede-mpirun [--bede-par RANKS[:THREADS]] mpirun-options program arguments
//
// mpirun's options are as many as its versions, so that nobody but mpirun knows where they end:
// they and the program are handed on as they are.  Pure.

#pragma once

#include <string>
#include <vector>

namespace launcher {

enum class RankShare { kNode, kGpu, kCore, kHardwareThread };  // 1ppn, 1ppg, 1ppc, 1ppt
enum class ThreadShare { kCores, kHardwareThreads, kOne };     // 1tpc, 1tpt, none

struct BedePar {
  RankShare ranks = RankShare::kCore;
  ThreadShare threads = ThreadShare::kHardwareThreads;
  bool threads_are_asked_for = false;  // false: an OMP_NUM_THREADS of the user counts
};

struct BedeOptions {
  BedePar par;
  bool dry_run = false;
  bool help = false;
  bool version = false;
  std::vector<std::string> mpirun_words;  // mpirun's options and the program, verbatim
};

// The options that are not mpirun's: what --help, the manual page and the completion say of them.
struct BedeOptionSpec {
  const char* name = "";      // with its dashes
  const char* argument = "";  // "" for a switch
  const char* help = "";
  std::vector<std::string> choices = {};  // of the argument
};
std::vector<BedeOptionSpec> BedeOptionTable();

// "1ppg", "1ppn:none".  Throws LaunchError(EX_USAGE) with the ones there are.
BedePar ParseBedePar(const std::string& text);

// "1ppc:1tpt".
std::string FormatBedePar(const BedePar& par);

// `arguments` without the program's own name.  The first --bede-par and --bede-dry-run are ours
// wherever they stand, --help and --version as the first argument.  Throws LaunchError(EX_USAGE)
// when a value or the program is missing.
BedeOptions ParseBedeOptions(const std::vector<std::string>& arguments);

// What --help prints.
std::string BedeHelpText();

}  // namespace launcher
