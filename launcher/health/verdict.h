// SPDX-License-Identifier: Apache-2.0
//
// What a check says, and the table that the user sees.  Pure.

#pragma once

#include <string>
#include <vector>

namespace launcher {

enum class Status { kOk, kWarn, kFail, kNotKnown };

struct Verdict {
  std::string check;  // "infiniband": one of doc/reference.md
  Status status = Status::kOk;
  std::string seen;    // what was seen, and on which hosts
  std::string advice;  // what to do, "" when there is nothing
};

bool AnyFailed(const std::vector<Verdict>& verdicts);

// A line per verdict, under a heading:
//   check        verdict    what was seen
//   infiniband   warn       gpu026 has 1 active port, the others 2: do this
std::string VerdictTable(const std::vector<Verdict>& verdicts);

// "gpu[025-026,031]"; names that are no host names are listed as they are.
std::string HostsText(const std::vector<std::string>& hosts);

}  // namespace launcher
