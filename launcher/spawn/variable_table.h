// SPDX-License-Identifier: Apache-2.0
//
// What happens to the variables of ddlrun's environment on their way to the ranks, with the
// reasons: the one place, from which doc/reference.md has its table (a test compares the two).
// What ranks are given beside them is in rank_variables.h.  Pure.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace launcher {

enum class Fate {
  kKept,           // every rank has it: all that is not in the table
  kOfAnotherRank,  // taken away: says who an enclosing rank is, which a rank would take for itself
  kOptionOfSrun,   // taken away from srun, also where mpirun starts its daemons by it
  kGpusOfSrun,     // taken away from srun; mpirun's daemons get their GPUs by it
  kOfThisNode,     // not carried to other nodes by mpirun
};

struct VariableGroup {
  Fate fate;
  std::vector<std::string_view> names;  // "SLURM_*": all that begin so
  const char* reason;
};

// Where several names fit, the longest counts.
const std::vector<VariableGroup>& VariableTable();

Fate FateOf(std::string_view name);

// As the table of the documentation says it; "" for kKept.
const char* FateText(Fate fate);

}  // namespace launcher
