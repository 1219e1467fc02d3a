// SPDX-License-Identifier: Apache-2.0
//
// Figures of ddlrun --tune: read from what ddlbench allreduce prints, and compared.  Pure.

#pragma once

#include <string>
#include <utility>
#include <vector>

namespace launcher {

// Of a knob, a difference under this part of the time counts for nothing, however small the
// scatter: the next job will not show it.
inline constexpr double kMinGain = 0.03;

struct SizeTime {
  long long bytes = 0;
  double microseconds = 0;
};

// What a table of ddlbench allreduce --form=nccl-tests says of each size.  Empty where it is no
// whole table: without its last lines, with a wrong sum, or none at all.
std::vector<SizeTime> ParseAllReduce(const std::string& text);

// Whether the sums of this table were NCCL's.
bool IsOfNccl(const std::string& text);

// One number for all sizes, in microseconds: the geometric mean, in which each size counts the
// same.  REQUIRES: `times` is not empty.
double ScoreOf(const std::vector<SizeTime>& times);

// The median of some measurements of one thing, and how far they scatter: from the least to the
// largest of them, of five or more without these two.
struct Summary {
  double median = 0;
  double spread = 0;
};

// REQUIRES: `values` is not empty.
Summary Summarize(std::vector<double> values);

// Whether the first takes less time, by more than the scatter of either and by kMinGain.
bool IsBetter(const Summary& candidate, const Summary& reference);

// "12.3 ms", "450 us", "1.2 s".
std::string MicrosecondsText(double microseconds);

// "12.3 ms (scatter 0.4 ms)".
std::string SummaryText(const Summary& summary);

// Which link of which node is slow: pairs of nodes are measured on each way between them, and the
// fastest pair is what all are compared with.  Pure.

// Up to so many nodes every pair is measured; of more each node with the next one, round in a ring.
inline constexpr int kMaxNodesOfEveryPair = 5;
// A pair is slow if it takes this many times as long as the fastest.
inline constexpr double kSlowPair = 1.5;

// Indices of nodes.  None for fewer than two.
std::vector<std::pair<int, int>> PairsToMeasure(int nodes);

struct PairTime {
  int one = 0;
  int other = 0;
  std::vector<double> microseconds;  // none: the pair failed
};

// A line for each node of which every pair is slow or failed while others are not, "n3 is slow:
// ...", and for each other slow pair.  `way` is how it is told which way was measured, "eth1".
std::vector<std::string> SlowLinkReporter(const std::string& way,
                                          const std::vector<std::string>& hosts,
                                          const std::vector<PairTime>& pairs);

// Copies between hosts and devices in ddlrun --tune: read from what ddlbench copies prints, and
// judged: which rank is bound far from its device, and whose copies are slow wherever it is.  Pure.

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
