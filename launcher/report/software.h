// SPDX-License-Identifier: Apache-2.0
//
// What Slurm and MPI say of themselves, as lines of a site report.

#pragma once

#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/report/site_report.h"

namespace launcher {

// Asks srun for its version and its kinds of PMI, scontrol for the configuration, and `mpirun` for
// its version, where they are in PATH.  scontrol may take 30 s where slurmctld is down.
std::vector<SiteReportField> SoftwareLines(const std::string& mpirun,
                                           const Environment& environment);

// Of what `scontrol show config` prints the values that decide how ranks are started, bound and
// limited; none that names an account, a host or a path.  Pure.
std::vector<SiteReportField> ConfigurationLines(const std::string& text);

}  // namespace launcher
