// SPDX-License-Identifier: Apache-2.0
//
// The evaluations of a training: when one is due, which weights are the best so far, and whether
// they are good enough.  What earlier launches have found is in their checkpoints
// (checkpoint/evaluated.h), so a launch that goes on decides as if it had never stopped.
//
// All ranks are told the same, so all decide alike.

#pragma once

#include <cstdint>

#include "trainer/comm/communicator.h"
#include "trainer/train/config.h"
#include "trainer/train/schedule.h"

namespace trainer {

class Evaluations {
 public:
  // Collective: rank 0 reads what is noted in ModelDirectory(config).  `schedule`: of this launch.
  // `config` outlives it.  Throws Error(EX_OSERR) where that cannot be read.
  Evaluations(const TrainConfig& config, Communicator& communicator, const Schedule& schedule);

  // The launch goes on by another schedule, from a checkpoint.
  void Resume(const Schedule& schedule) { schedule_ = schedule; }

  // Whether the weights after `step` updates are to be evaluated.  Those of the end of the training
  // are not meant: they always are.
  bool IsDue(std::int64_t step) const;
  // Whether that was so where this launch begins, and has not been done.
  bool IsOverdue() const { return first_top1_ < 0 && IsDue(schedule_.start.step); }

  // What was found, a fraction of 1.  Returns whether it is better than all before.
  bool Add(double top1);
  // Whether it ends the training.
  bool ReachesTarget(double top1) const;
  // Of the weights that this launch begins with; below 0: not known.
  double first_top1() const { return first_top1_; }

 private:
  const TrainConfig& config_;
  Schedule schedule_;
  double first_top1_ = -1;
  double best_top1_ = -1;  // below 0: there is none
};

}  // namespace trainer
