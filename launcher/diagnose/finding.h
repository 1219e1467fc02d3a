// SPDX-License-Identifier: Apache-2.0
//
// What a rank of a job that hangs does, as far as one can tell without the others.  Pure.

#pragma once

#include <optional>
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

// `kind` is nullopt of a rank that waits for others, as in a collective.
struct Finding {
  int rank = 0;
  std::string host;
  int pid = 0;
  std::optional<HangCause> kind;
  std::string text;        // "stopped by a signal ..."
  std::string collective;  // "all_reduce (train.py:50)" of one that waits in a collective
  std::string place;       // a function, a call: what ranks that do the same have in common
  // " for its worker pid 4713, which waits in __getitem__ (data.py:12)"; "" where it is not known
  // to.
  std::string worker;
  // False where it is a worker or another thread that is held up: the rank may not need it now.
  bool is_direct = true;
  // "has launched AllReduce 17 times (others 18)", as NCCL counts them, or as PyTorch has recorded
  // them (recorded_collectives.h).
  std::string launched;
  std::string recorded;  // the collective that all ranks are in, as PyTorch has recorded it
  bool was_seen = true;  // false: its node was not looked at
  bool is_still = true;  // nothing of it has run between the two looks
};

Finding FindingOf(const RankFacts& rank);

// "recvfrom of a socket in load (data.py:7)".
std::string CallText(const ProcessFacts& process);

// Where a process is: its innermost function that is none of Python's own or of a package, which
// wait in many places for the same; of those that have none such, the innermost.  "load
// (data.py:7)".
std::string PlaceOf(const std::vector<std::string>& stack);

// Whether a process of Python waits in a library for another process that it has started: a worker
// of PyTorch's DataLoader, or of Python's own pools.  Pure.
bool WaitsForWorker(const ProcessFacts& process);

// Whether /proc does not tell what a process does, but its functions may: it computes, or waits for
// others.  Pure.
bool NeedsFunctions(const ProcessFacts& process);

}  // namespace launcher
