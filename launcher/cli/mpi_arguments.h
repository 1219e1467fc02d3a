// SPDX-License-Identifier: Apache-2.0
//
// Arguments for Open MPI's mpirun as it takes them.  Pure.
//
// Old scripts give those of IBM Spectrum MPI's mpirun with --mpiarg, which Open MPI's refuses. What
// they meant: IBM Spectrum MPI 10.1 User's Guide (GC27-8265), and for -pami_noib, -prot,
// -verbsbypass notes of its users.

#pragma once

#include <string>
#include <vector>

namespace launcher {

// Open MPI's own way to say "no InfiniBand": what --tcp adds.  Version 5 has no openib and does not
// mind the name; ofi and uct reach InfiniBand too.
const std::vector<std::string>& NoInfinibandArguments();

struct MpiArguments {
  std::vector<std::string> words;     // for Open MPI's mpirun
  std::vector<std::string> warnings;  // one line each with its code (messages.h)
};

// Each argument of IBM's in `words` is replaced by what Open MPI has for it, or left out, with a
// warning that says so; its name may have one dash or two.  Other words stay as they are.
MpiArguments TranslateIbmArguments(const std::vector<std::string>& words);

// Of several "--mca NAME VALUE" with one NAME the last, since mpirun refuses two.  Other words
// stay.
std::vector<std::string> LastOfEachParameter(const std::vector<std::string>& words);

}  // namespace launcher
