// SPDX-License-Identifier: Apache-2.0
//
// How a run resumes from a checkpoint: where, after a rollback, and what of it has changed since.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/data/shard_sampler.h"

namespace trainer {

// Where a training resumes after a rollback to a checkpoint (--on_nan=rollback), and how often it
// may do so: doc/decisions/0040-rollback.md.
//
// It goes on with the weights of the checkpoint, behind the images of the step that found numbers
// that are none: those from the checkpoint up to there are skipped.  That is a position like any
// other, so a checkpoint of later holds all that a resume needs, and epochs and learning rate,
// which follow the images, never go back.
//
// Every rank is told the same, so all decide alike.  Pure.
class Rollbacks {
 public:
  // To one checkpoint: where no newer one comes of it, going back once more is no help.
  static constexpr int kMaxInARow = 3;

  // The run goes back to `checkpoint`, since the step that ended before image `behind` has found
  // what NonFiniteGuard says in `found`.  Returns where it goes on.  Throws Error(EX_SOFTWARE),
  // which says that, after kMaxInARow to this checkpoint, or an older one.
  Position Resume(const Position& checkpoint, std::int64_t behind, const std::string& found);

  // To the last checkpoint.
  int in_a_row() const { return in_a_row_; }

 private:
  std::int64_t step_ = -1;  // of the newest checkpoint that was gone back to
  int in_a_row_ = 0;
};

// What a run that goes on says of everything that is not as its checkpoint has it.  Pure.
// One text for each thing that has changed, "ranks 2 (now 3)", with what comes of it behind a
// semicolon where that is not plain.  `now`: the state in which the run goes on.  What one of the
// two does not know, as older versions noted less, is left out.
std::vector<std::string> ChangesSince(const CheckpointState& then, const CheckpointState& now);

}  // namespace trainer
