// SPDX-License-Identifier: Apache-2.0
//
// ddlbench startup: how much longer a program takes that ddlrun starts than one that srun, mpirun,
// or nobody, starts.

#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "bench/ddlbench/runs/command_runner.h"

namespace bench {

struct StartupOptions {
  int ranks = 0;  // 0: as many as ddlrun starts without being told
  int rounds = 10;
  std::vector<std::string> ddlrun;  // options for it
};

// Throws trainer::Error(EX_USAGE) naming the option that is wrong.
void CheckStartupOptions(const StartupOptions& options);

// `ddlrun` with its options, `more` of them, and the program `true`.
std::vector<std::string> StartupCommand(const StartupOptions& options, const Programs& programs,
                                        const std::vector<std::string>& more);

// How ranks are started without ddlrun.
struct BareStart {
  std::string by;                 // "srun", "mpirun", or "fork" of ranks on this machine
  std::vector<Command> commands;  // at once
};

// Out of what `ddlrun --dry-run true` prints: the srun command without the shim of a rank; mpirun
// with as many ranks; or, of ranks on this machine, `true` as often as there are ranks.  Throws
// trainer::Error(EX_CONFIG) where several sruns start them.
BareStart BareStartOf(const std::string& printed);

// Milliseconds of each round.
struct StartupTimes {
  std::vector<double> bare;
  std::vector<double> ddlrun;
};

// Median, mean, sd, min and max of both, and of the differences within the rounds.
std::string FormatStartup(const StartupTimes& times);

// Prints the table to `out`.  Returns 0, or 128 + n when signal n stopped it.  Throws
// trainer::Error: EX_UNAVAILABLE when a start fails.
int RunStartup(const StartupOptions& options, const Programs& programs, std::ostream& out,
               std::ostream& messages);

}  // namespace bench
