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
  // Of a failure: without these the others would pass, as far as can be told; empty where it
  // cannot.
  std::vector<std::string> bad_hosts = {};
};

bool AnyFailed(const std::vector<Verdict>& verdicts);

struct BadNode {
  std::string host;
  std::string reason;  // "gpus: 4 planned, 3 seen (n2)"; of several checks with "; " between them
};

// The nodes that a job could do without, to pass.
std::vector<BadNode> BadNodes(const std::vector<Verdict>& verdicts);

// A line per verdict, under a heading:
//   check        verdict    what was seen
//   infiniband   warn       gpu026 has 1 active port, the others 2: do this
std::string VerdictTable(const std::vector<Verdict>& verdicts);

// "gpu[025-026,031]"; names that are no host names are listed as they are.
std::string HostsText(const std::vector<std::string>& hosts);

}  // namespace launcher
