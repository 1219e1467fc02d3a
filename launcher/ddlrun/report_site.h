// SPDX-License-Identifier: Apache-2.0
//
// ddlrun --site-report: what a ticket to the support of a site should tell of it.

#pragma once

#include "launcher/base/environment.h"
#include "launcher/cli/options.h"

namespace launcher {

// Asks the nodes of the job, or this machine, by the check of --check-only, and prints the report.
// What cannot be found out is a line of the report: a site file that is wrong, a job that cannot be
// planned, a launcher that is missing.  Returns the exit code: EX_OK with a report, 128 + n when
// signal n stopped ddlrun.  Throws LaunchError(EX_USAGE) where the command line asks for something
// else as well, and LaunchError(EX_OSERR).
int ReportSite(const Options& options, const Environment& environment);

}  // namespace launcher
