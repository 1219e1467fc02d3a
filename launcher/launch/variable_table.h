// SPDX-License-Identifier: Apache-2.0
//
// What happens to the variables of ddlrun's environment on their way to the ranks, and why.  The
// table in doc/reference/environment.md is made from this one, and a test compares the two.  The
// variables that ranks are given in addition are in protocol/rank_variables.h.  Pure.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace launcher {

enum class ExportPolicy {
  kKept,           // every rank gets it; so does every variable that is not in the table
  kOfAnotherRank,  // taken away, since it says who an enclosing rank is
  kOptionOfSrun,   // taken away from srun, also from the srun that mpirun starts its daemons by
  kGpusOfSrun,     // taken away from srun; the daemons of mpirun get their GPUs by it
  kOfThisNode,     // mpirun does not carry it to other nodes
};

struct VariableGroup {
  ExportPolicy policy;
  std::vector<std::string_view> names;  // "SLURM_*" stands for all that begin with SLURM_
  const char* reason;
};

// Where several names fit, the longest counts.
const std::vector<VariableGroup>& VariableTable();

ExportPolicy ExportPolicyOf(std::string_view name);

// What doc/reference/environment.md says in the second column of its table.
const char* ExportPolicyText(ExportPolicy policy);

}  // namespace launcher
