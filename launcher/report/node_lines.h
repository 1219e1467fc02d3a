// SPDX-License-Identifier: Apache-2.0
//
// The facts of nodes as lines of a site report, in which nodes that agree are told once; and what
// is odd about them.  Pure.

#pragma once

#include <string>
#include <vector>

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

}  // namespace launcher
