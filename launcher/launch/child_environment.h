// SPDX-License-Identifier: Apache-2.0
//
// Which variables of ddlrun's own environment its children get.  Pure.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/environment.h"

namespace launcher {

// What happens to each variable, and why.  The table in doc/reference/environment.md is made from
// this one, and a test compares the two.  The variables that ranks are given in addition are in
// protocol/rank_variables.h.
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

// Whether `name` says who an enclosing rank is (OMPI_COMM_WORLD_*, PMIX_*, SLURM_PROCID, RANK,
// ...).  ddlrun has such variables when it runs inside another launcher, or in a batch script,
// which Slurm numbers as task 0.  They are never given to what ddlrun starts: a rank would take
// them for its own.
bool IsRankIdentity(const std::string& name);

// Whether mpirun must carry `name` to other nodes (-x).  It carries every variable, except those
// for which the table says something else, also one whose name no shell takes (FOO.BAR).  A user
// can still ask for any variable by -x.
bool IsForwarded(const std::string& name);

// `environment` without what srun would take for its options, for srun itself and for the srun that
// mpirun starts inside Slurm.
Environment EnvironmentForSrun(Environment environment);
Environment EnvironmentForMpirun(Environment environment);

}  // namespace launcher
