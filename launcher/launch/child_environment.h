// SPDX-License-Identifier: Apache-2.0
//
// Which variables of ddlrun's own environment its children get; variable_table.h has the names and
// the reasons.  Pure.

#pragma once

#include <string>

#include "launcher/base/environment.h"

namespace launcher {

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
