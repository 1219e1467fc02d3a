// SPDX-License-Identifier: Apache-2.0
//
// A report as a text: a page for browsers, tables for a terminal, JSON for scripts.  Pure.  Bytes
// that are no UTF-8 and control characters are replaced, whatever files and paths have had in them.

#pragma once

#include <string>
#include <vector>

#include "bench/report/charts/document.h"
#include "bench/report/report_model.h"

namespace bench {

// One page of HTML 5 that needs nothing else: no script, no font, no address outside of it.  Behind
// each chart stands its table.
std::string FormatHtml(const Document& document, const std::string& version);

// The tables that are short, in columns.
std::string FormatText(const Document& document);

// One object; doc/reference/benchmarks.md describes it.  Numbers have all their digits; what is not
// known is null.
std::string FormatReportJson(const ReportModel& model, const std::vector<std::string>& problems,
                             const std::string& version);

}  // namespace bench
