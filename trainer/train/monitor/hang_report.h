// SPDX-License-Identifier: Apache-2.0
//
// Who is to blame when nothing moves any more: what each rank said about itself, and the line that
// follows from it.  Pure.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trainer {

enum class Activity : std::uint8_t { kSetUp, kTraining, kCheckpoint, kEvaluation, kPause };
inline constexpr std::size_t kActivities = 5;

// What a rank says when it has seen no progress for long.
struct RankState {
  int rank = 0;
  Activity activity = Activity::kSetUp;
  std::int64_t step = 0;  // updates done before
  bool waiting = false;   // in a call that needs the other ranks; false: at work of its own
  double seconds = 0;     // since when
  bool reading = false;   // at work of its own: it waits for its data
  std::string file = {};  // from which, or ""
  // How long who reads it has read the same, in seconds: not a part of what is said.
  double unchanged_seconds = 0;
};

// One line, in the order of the members; another one a millisecond later.
std::string ToText(const RankState& state);
// False if `text` is no such line.
bool FromText(const std::string& text, RankState& state);

// `said` without those who are silent by now: who waits for data says so again and again, but not
// as a process that is stopped, and then has said the same for `bound` seconds.
std::vector<RankState> StillResponding(std::span<const RankState> said, double bound);
// Whether the run stands still for ranks that wait for their data, and for nothing else: all
// `ranks` are among those that are still heard, and who does not wait for others reads.
bool IsInputWait(std::span<const RankState> received, std::size_t ranks);
// "rank 3 on node7 has waited 130 s for its data (reading FILE); the others wait for it".
// REQUIRES: IsInputWait.
std::string InputWaitReport(const RankState& own, std::span<const RankState> received,
                            const std::vector<std::string>& hosts);

// Of `ranks`, those that are not among `said`.
std::vector<int> SilentRanks(std::span<const RankState> said, std::size_t ranks);

// "in training, step 17, waiting for other ranks, no progress for 61 s".
std::string DescribeState(const RankState& state);

// "; rank 1 on n2 is in read < ReadAhead::Read, the others in ...": where the rank is that is not
// where most are, or "" if there is no such rank.  briefs[r]: where rank r is, or "" (InBrief).
std::string DescribeOddOne(std::span<const RankState> said, const std::vector<std::string>& briefs,
                           const std::vector<std::string>& hosts);

// "no progress for 60 s in training, step 17: rank 2 on n2 does not answer: ..."  `own` is the
// state of the rank that speaks, `said` those that were found, hosts[r] the node of rank r.  Nobody
// is accused if not even the own is among them.
std::string HangReport(const RankState& own, std::span<const RankState> said,
                       const std::vector<std::string>& hosts);

}  // namespace trainer
