// SPDX-License-Identifier: Apache-2.0
//
// The collectives that PyTorch has recorded in the ranks of a job, compared.  Pure.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "launcher/diagnose/facts.h"

namespace launcher {

struct RecordedVerdict {
  // Of ranks that have called other collectives than most of a process group: "has not started
  // all_reduce number 1235 of process group 0 (default_pg), which the others have".  Of as many on
  // both sides those that have called more are the others.  A rank that is behind only since it
  // waits for another one in another group is not among them.
  std::map<int, std::string> otherwise;
  // "all_reduce number 1235 of process group 0 (default_pg)", where all ranks are in the same, with
  // the same sizes; else "".
  std::string common;
};
RecordedVerdict CompareRecords(const std::vector<NodeFacts>& nodes);

// "all_reduce number 1235 of process group 0 (default_pg), started, [[3, 4]] Float, called in sync
// (train.py:50)".
std::string RecordText(const RecordedGroup& group, const RecordedCollective& collective);

}  // namespace launcher
