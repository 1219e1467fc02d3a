// SPDX-License-Identifier: Apache-2.0
//
// The report of ddlrun --site-report as a value, and its two forms.  Pure.

#pragma once

#include <functional>
#include <string>
#include <vector>

namespace launcher {

// What ddlrun --site-report does not tell: values of variables that are not known to be harmless,
// names of users, and paths of homes.  Pure.

struct Redaction {
  std::string home;  // of this user, an absolute path; "": not known
  std::string user;  // the name of this user; "": not known
  // Whether it is the name of another person's account; asked of the parts of paths alone.
  std::function<bool(const std::string&)> is_other_user = [](const std::string&) { return false; };
};

// `text`, in whose paths the home of this user is "~", and the name of any other home beside it, or
// in /home or /users, of this user and of other users is "...".
std::string WithoutNames(const std::string& text, const Redaction& redaction);

// Whether the value of this variable may be told: it chooses devices, ways and numbers for Slurm,
// MPI, UCX, NCCL or CUDA, and is no place for a secret.
bool IsKnownVariable(const std::string& name);

// Whether the name of this variable is told although its value is not.
bool IsNamedVariable(const std::string& name);

// Arguments of mpirun without values that may be secret: of -x NAME=VALUE the name is left, of
// --mca NAME VALUE the value where IsKnownVariable("OMPI_MCA_NAME"), of other words those that are
// options or numbers.  What is left out is "...".
std::vector<std::string> WithoutValues(const std::vector<std::string>& mpi_arguments);

// A refusal of a site file (site_config.h) without what the file has instead of a choice, and
// without what follows '=' in what it quotes.
std::string WithoutQuotedValue(const std::string& message);

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
