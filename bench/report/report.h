// SPDX-License-Identifier: Apache-2.0
//
// ddlbench report: what the files of runs say, as a page, as text or as JSON.

#pragma once

#include <string>
#include <vector>

#include "bench/base/diagnostics.h"

namespace bench {

struct ReportOptions {
  std::vector<std::string> runs;  // directories and logs
  std::string output;             // the page; "": report.html, and none with text or json
  std::string title;              // "": from the runs
  std::string baseline;  // one of `runs`, or the name of a run in the report; "": the first
  int skip_steps = 0;    // at the start of each launch, of those that are logged
  std::string site;      // whose links say what is predicted; "": nothing is
  bool text = false;     // tables on standard output
  bool json = false;     // an object on standard output
};

struct ReportTexts {
  std::string page_path;  // "": there is to be no page
  std::string page;
  std::string printed;  // for standard output
};

// Reads the runs.  What cannot be read is a problem, and the rest is shown: only where there is no
// rest there is neither page nor text.  `version` is that of the program.
// Throws trainer::Error(EX_USAGE) for options that make no sense together, and for a baseline that
// is none of the runs.
ReportTexts MakeReport(const ReportOptions& options, const std::string& version,
                       Diagnostics& diagnostics);

}  // namespace bench
