// SPDX-License-Identifier: Apache-2.0
//
// Two steps under way: on a device with graphs the next step is queued while one runs, before the
// host has seen what that one finds.  Else the device has nothing to do until the host has woken,
// has told the other ranks its numbers, has judged the step and has started a graph.
//
// A step that was queued so knows the update before it (UpdateParameters::before): where that is
// left out, so is its own.  The ranks' sums are in both, so that it is the same on all of them.
// The host, which judges the first, then sets the running statistics back and queues the second
// once more.  Which steps are queued so follows from what all ranks know: each does it or none.
//
// Pure.

#pragma once

#include <cstdint>

#include "trainer/train/config.h"
#include "trainer/train/schedule.h"

namespace trainer {

// Whether it is the turn of something that is done every `every` steps; 0: never.
inline bool IsTurn(std::int64_t done, std::int64_t every) { return every > 0 && done % every == 0; }

// Whether the loop looks at weights, momentum or statistics, or begins to record, once `done` steps
// of the run are done, as far as that is known before: for a checkpoint, an evaluation, a
// comparison of ranks, a dump or a trace, or since the launch ends with `end`.
bool IsLookedAt(std::int64_t done, std::int64_t end, const TrainConfig& config,
                const Schedule& schedule);

// What is known when a step has just been queued, of it and of the next.  The same on all ranks.
struct NextStep {
  bool has_graphs = false;          // to be queued as one that is there
  bool is_looked_at = true;         // what the first leaves (IsLookedAt)
  std::int64_t batches = 1;         // of a step; the largest number that a rank has
  bool is_one_replayed = false;     // of the two (--replay_check)
  bool changes_loss_scale = false;  // the first, if it is a good one
  bool is_requested = false;        // something, which waits for the end of the first
};

bool MayQueueNext(const NextStep& next);

}  // namespace trainer
