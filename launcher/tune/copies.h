// SPDX-License-Identifier: Apache-2.0
//
// Copies between hosts and devices in ddlrun --tune: read from what ddlbench copies prints, and
// judged: which rank is bound far from its device, and whose copies are slow wherever it is.  Pure.

#pragma once

#include <string>
#include <vector>

namespace launcher {

// From elsewhere a copy has to be this many times as fast for a rank to be called bound far away.
inline constexpr double kFarAway = 1.2;
// A rank is slow whose copies have less than this part of the median over the ranks.
inline constexpr double kSlowCopies = 0.7;
// Ranks that are named, of either kind; the others are counted.
inline constexpr int kNamedRanks = 8;

// Where the rank is bound, all ranks at once; and there, one rank of each host at a time, as from
// NUMA nodes.
inline constexpr int kAll = -2;
inline constexpr int kBound = -1;

struct CopyRow {
  int rank = 0;
  std::string host;
  std::string device;  // "0000:3b:00.0"; "-": none, memory of the host
  std::string bridge;  // "0000:3a", its host bridge; "-": not known
  int from = kAll;     // kAll, kBound or a NUMA node
  double rate = 0;     // GB/s there and back: bytes both ways in the time of both
};

// The rows of the table; what is no row is passed over.
std::vector<CopyRow> ParseCopies(const std::string& text);

// What some runs say, in lines without their ends: the rates, ranks that are bound far from their
// device, with what tells hwloc better, and slow ranks.  Empty where there are no rows.
std::vector<std::string> CopyRemarks(const std::vector<std::vector<CopyRow>>& runs);

}  // namespace launcher
