// SPDX-License-Identifier: Apache-2.0
//
// The report of ddlrun --site-report as a value, and its two forms.  Pure.

#pragma once

#include <string>
#include <vector>

#include "launcher/report/redaction.h"

namespace launcher {

// The number of the JSON form (doc/formats.md).
inline constexpr int kSiteReportFormat = 1;

struct SiteReportField {
  std::string name;
  std::string text;
  std::vector<std::string> hosts = {};  // none: of all nodes, or of no node
};

struct SiteReportSection {
  std::string title;
  std::vector<SiteReportField> lines;
};

struct SiteReport {
  std::string time;  // "2026-11-27 09:30:00 UTC"
  std::vector<SiteReportSection> parts;
};

// A heading for each part and a line for each of its lines, the texts in one column.  Lines of some
// hosts end with these in brackets.  Lines and control characters within a text become blanks.
std::string ReportAsText(const SiteReport& report);

// One object with format, time and parts, indented by two blanks, ASCII:
//   {"format": 1, "parts": [{"lines": [{"hosts": ["n1"], "name": "SMT", "text": "on"}], ...
std::string ReportAsJson(const SiteReport& report);

// Every text of `report`, without what `redaction` hides.
SiteReport Redacted(SiteReport report, const Redaction& redaction);

}  // namespace launcher
