// SPDX-License-Identifier: Apache-2.0
//
// What ddlrun and bede-mpirun find around them: files, programs, this machine's name, the
// allocation, the site file.  The edge before everything pure.

#pragma once

#include <string>

#include "launcher/allocation/allocation.h"
#include "launcher/base/environment.h"
#include "launcher/cli/options.h"

namespace launcher {

// Slurm's, of which -H and -hostfile choose nodes; outside of Slurm these, else this machine.
// `may_leave_job`: hosts that are not all of the job are taken as outside of Slurm (mpirun by ssh).
// Throws LaunchError.
Allocation ReadAllocation(const Options& options, const Environment& environment,
                          bool may_leave_job);

// Whether `host` is Slurm's name of this node, its host name (with or without the domain), or a
// name of the loopback.
bool IsThisMachine(const std::string& host, const Environment& environment);

}  // namespace launcher
