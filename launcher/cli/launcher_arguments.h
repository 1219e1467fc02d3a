// SPDX-License-Identifier: Apache-2.0
//
// The arguments that users give for mpirun, in the form that Open MPI's mpirun takes.  Pure.
//
// Old scripts have arguments of IBM Spectrum MPI's mpirun in --mpiarg, which Open MPI's mpirun
// refuses.  What they meant is in the IBM Spectrum MPI 10.1 User's Guide (GC27-8265); for
// -pami_noib, -prot and -verbsbypass it is taken from notes of its users.

#pragma once

#include <map>
#include <string>
#include <vector>

namespace launcher {

// The arguments by which Open MPI does without InfiniBand, which --tcp adds.  The transports
// openib, ofi and uct all reach InfiniBand; version 5, which has no openib any more, accepts the
// name.
const std::vector<std::string>& NoInfinibandArguments();

struct MpiArguments {
  std::vector<std::string> words;     // for Open MPI's mpirun
  std::vector<std::string> warnings;  // one line each with its code (messages.h)
};

// Each argument of IBM's in `words` is replaced by what Open MPI has for it, or left out, with a
// warning that says so; its name may have one dash or two.  Other words stay as they are.
MpiArguments TranslateIbmArguments(const std::vector<std::string>& words);

// The words without those "--mca NAME VALUE" that a later one with the same NAME replaces: mpirun
// refuses to have a name twice.
std::vector<std::string> LastOfEachParameter(const std::vector<std::string>& words);

// What other launchers can do of `words`: Open MPI reads the parameter NAME from OMPI_MCA_NAME too.
struct SplitArguments {
  // Of "-x NAME=VALUE" and "--mca NAME VALUE", each with one dash or two.  "-x NAME" is no word of
  // `rest` either: ranks of the other launchers get the whole environment.
  std::map<std::string, std::string> variables;
  std::vector<std::string> rest;
};
SplitArguments SplitMpiArguments(const std::vector<std::string>& words);

// Throws LaunchError(exit_code) where one of `words` is an option of srun by which ddlrun itself
// places and starts the ranks, or where srun would take what comes behind for a program.  `origin`:
// who gave it, for the message.
void RequireNoOwnArgument(const std::vector<std::string>& words, const std::string& origin,
                          int exit_code);

}  // namespace launcher
