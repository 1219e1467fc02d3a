// SPDX-License-Identifier: Apache-2.0
//
// The environment of ddlrun as a value, and which of it belongs to ranks.  SnapshotEnvironment is
// the only reader of the process environment in the launcher; the rest is pure.

#pragma once

#include <map>
#include <string>
#include <vector>

namespace launcher {

using Environment = std::map<std::string, std::string>;

// The environment of this process.  Entries that are not NAME=value are left out.
Environment SnapshotEnvironment();

// "NAME=value" for execve, in the order of the names.
std::vector<std::string> ToStrings(const Environment& environment);

// Whether `name` says who an enclosing rank is (OMPI_COMM_WORLD_*, PMIX_*, SLURM_PROCID, RANK,
// ...): ddlrun inside another launcher, or in a batch script, which Slurm numbers as task 0.  Never
// given to what ddlrun starts: a rank would take it for its own.  variable_table.h has the names.
bool IsRankIdentity(const std::string& name);

// Whether mpirun must carry `name` to other nodes (-x).  Everything is, except what
// variable_table.h says something else of, and names that are not identifiers.  A denied variable
// can still be asked for by -x.
bool IsForwarded(const std::string& name);

// `environment` without what srun, or inside Slurm the srun of mpirun, would take for options.
Environment EnvironmentForSrun(Environment environment);
Environment EnvironmentForMpirun(Environment environment);

}  // namespace launcher
