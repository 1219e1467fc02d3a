// SPDX-License-Identifier: Apache-2.0
//
// Which rank of a job hangs, and why, from what was seen of all of them.  Pure.
//
// A verdict without "perhaps" is one that the facts leave no doubt about: the rank itself cannot go
// on, or goes on only when it wakes, and all others wait.  Whatever else stands out is reported
// with "perhaps".

#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/diagnose/facts.h"
#include "launcher/diagnose/finding.h"

namespace launcher {

// What is known of a job besides the facts of its nodes.
struct HangingJob {
  std::vector<NodeFacts> nodes;           // that have answered
  std::vector<std::string> hosts;         // of each rank; none: not known
  std::map<int, int> ended;               // ranks that have ended, with their exit codes
  std::vector<std::string> silent_nodes;  // that were asked and have not answered
};

struct Diagnosis {
  HangCause cause = HangCause::kUnknown;
  std::vector<int> ranks;  // that are to blame, the first is that of the line; none: no single one
  std::string host;        // of the first
  int pid = 0;             // the same; 0: it has no process
  bool is_sure = false;
  std::string
      line;  // for people: "rank 3 (n2, pid 4711): stopped ...; 7 other ranks wait in all_reduce"
};
Diagnosis Diagnose(const HangingJob& job);

// A row for each rank: host, process, state, and where it is; and what could not be seen.
std::string RankTable(const HangingJob& job);

}  // namespace launcher
