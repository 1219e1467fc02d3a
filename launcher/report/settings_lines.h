// SPDX-License-Identifier: Apache-2.0
//
// The settings of ddlrun and the variables of its environment as lines of a site report.  Pure.

#pragma once

#include <vector>

#include "launcher/base/environment.h"
#include "launcher/cli/settings.h"
#include "launcher/report/site_report.h"

namespace launcher {

// A line per setting with where it comes from, as --show-config has them; the value of a variable,
// and of an argument of mpirun, only where it may be told (redaction.h).
std::vector<SiteReportField> SettingsLines(const Settings& settings);

// The variables whose values may be told, with these, and the names of others that matter.
std::vector<SiteReportField> VariableLines(const Environment& environment);

}  // namespace launcher
