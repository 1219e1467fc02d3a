// SPDX-License-Identifier: Apache-2.0
//
// Figures of ddlrun --tune: read from what ddlbench allreduce prints, and compared.  Pure.

#pragma once

#include <string>
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

}  // namespace launcher
