// SPDX-License-Identifier: Apache-2.0
//
// The verdict of a check, and the table of verdicts that the user sees.  Pure.

#pragma once

#include <string>
#include <vector>

namespace launcher {

enum class Status { kOk, kWarn, kFail, kNotKnown };

struct Verdict {
  std::string check;  // its name, "infiniband", as in doc/reference/launching.md
  Status status = Status::kOk;
  std::string seen;    // what was seen, and on which hosts
  std::string advice;  // what to do, "" when there is nothing
  // After a failure: the hosts without which the check would pass; empty where that cannot be told.
  std::vector<std::string> bad_hosts = {};
};

bool AnyFailed(const std::vector<Verdict>& verdicts);

struct BadNode {
  std::string host;
  std::string reason;  // "gpus: 4 planned, 3 seen (n2)"; of several checks with "; " between them
};

// The nodes without which the checks would pass, as far as that can be told.
std::vector<BadNode> BadNodes(const std::vector<Verdict>& verdicts);

// A line per verdict, under a heading:
//   check        verdict    what was seen
//   infiniband   warn       gpu026 has 1 active port, the others 2: do this
std::string VerdictTable(const std::vector<Verdict>& verdicts);

// "gpu[025-026,031]".  Names that are no host names are listed one by one.
std::string HostsText(const std::vector<std::string>& hosts);

}  // namespace launcher
