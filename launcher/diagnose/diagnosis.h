// SPDX-License-Identifier: Apache-2.0
//
// Which rank of a job hangs, and why, from what was seen of all of them.  Pure.
//
// A verdict without "perhaps" is one that the facts leave no doubt about: the rank itself cannot go
// on, or goes on only when it wakes, and all others wait.  Whatever else stands out is reported
// with "perhaps".

#pragma once

#include <string>
#include <vector>

#include "launcher/diagnose/facts.h"

namespace launcher {

// From the strongest evidence to the weakest.
enum class HangCause {
  kStopped,          // by a signal, or held by a debugger
  kEnded,            // it has ended while the others wait
  kUninterruptible,  // in a call that does not return: a file system, a driver
  kGpuError,         // the driver has reported an error of its GPU
  kOpens,            // opens a FIFO, or a file that does not answer
  kPipe,             // reads or writes a pipe whose other end does nothing
  kLock,             // waits for the lock of a file
  kTerminal,         // waits for what somebody types
  kAsleep,
  kKilledChild,  // a process that it has started was killed
  kMissing,      // no process of it was found
  kSilentNode,   // its node does not answer
  kOutlier,      // in another function or call than the others
  kComputes,     // uses its CPU while the others wait
  kNetwork,      // all wait for each other
  kAlike,        // all are in the same state: no rank of its own
  kUnknown,
};
// "stopped", for programs.
const char* NameOf(HangCause cause);

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

// Whether /proc does not tell what a process does, but its functions may: it computes, or waits for
// others.  Pure.
bool NeedsFunctions(const ProcessFacts& process);

// A row for each rank: host, process, state, and where it is; and what could not be seen.
std::string RankTable(const HangingJob& job);

}  // namespace launcher
