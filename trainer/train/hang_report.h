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
};

// One line of numbers, in the order of the members.
std::string ToText(const RankState& state);
// False if `text` is no such line.
bool FromText(const std::string& text, RankState& state);

// "no progress for 60 s in training, step 17: rank 2 on n2 does not answer: ..."  `own` is the
// state of the rank that speaks, `said` those that were found, hosts[r] the node of rank r.  Nobody
// is accused if not even the own is among them.
std::string HangReport(const RankState& own, std::span<const RankState> said,
                       const std::vector<std::string>& hosts);

}  // namespace trainer
