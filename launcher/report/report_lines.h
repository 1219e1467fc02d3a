// SPDX-License-Identifier: Apache-2.0
//
// The lines of a site report: facts of nodes, in which nodes that agree are told once; settings and
// variables; and what Slurm and MPI say of themselves, which alone asks programs.

#pragma once

#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/cli/settings.h"
#include "launcher/health/node_info.h"
#include "launcher/health/verdict.h"
#include "launcher/report/site_report.h"

namespace launcher {

// A line for each kind of fact; where nodes differ one for each group of them, with its hosts, the
// largest group first.  Nodes whose host is "" have not answered, and are left out.
std::vector<SiteReportField> NodeLines(const std::vector<NodeInfo>& info);

// Which of `lines` of NodeLines differ between nodes, each once.  What differs on nodes that are
// alike is left out: the CPUs of a job, and memory, which the judge compares with a tolerance.
std::vector<SiteReportField> Differences(const std::vector<SiteReportField>& lines);

// Those verdicts that are not ok: "warn: what was seen: what to do".
std::vector<SiteReportField> OddVerdicts(const std::vector<Verdict>& verdicts);

// All verdicts in the same form.
std::vector<SiteReportField> VerdictLines(const std::vector<Verdict>& verdicts);

// A line per setting with where it comes from, as --show-config has them; the value of a variable,
// and of an argument of mpirun, only where it may be told (site_report.h).
std::vector<SiteReportField> SettingsLines(const Settings& settings);

// The variables whose values may be told, with these, and the names of others that matter.
std::vector<SiteReportField> VariableLines(const Environment& environment);

// Asks srun for its version and its kinds of PMI, scontrol for the configuration, and `mpirun` for
// its version, where they are in PATH.  scontrol may take 30 s where slurmctld is down.
std::vector<SiteReportField> SoftwareLines(const std::string& mpirun,
                                           const Environment& environment);

// Of what `scontrol show config` prints the values that decide how ranks are started, bound and
// limited; none that names an account, a host or a path.  Pure.
std::vector<SiteReportField> ConfigurationLines(const std::string& text);

}  // namespace launcher
