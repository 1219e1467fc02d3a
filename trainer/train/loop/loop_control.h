// SPDX-License-Identifier: Apache-2.0
//
// The training loop's dealings with those who watch it and ask it for something: what it is asked
// for, whom it tells what it does, and the pause between two steps.
//
// Used from the thread of the loop, on every rank; where the functions are collective, they say so.

#pragma once

#include <cstdint>
#include <functional>

#include "trainer/control/run_control.h"
#include "trainer/train/config.h"
#include "trainer/train/logging/log_dispatcher.h"
#include "trainer/train/monitor/hang_report.h"
#include "trainer/train/monitor/slow_links.h"
#include "trainer/train/monitor/stragglers.h"
#include "trainer/train/schedule.h"
#include "trainer/train/step/metrics.h"

namespace trainer {

struct TrainerDeps;

class LoopControl {
 public:
  // Both outlive it.
  LoopControl(const TrainerDeps& deps, LogDispatcher& report);

  // What this rank is asked for now.
  Requests Requested();

  // What the loop does.  `step` updates are done.
  void StartTraining(const Schedule& schedule);  // collective
  void Enter(Activity activity, std::int64_t step);
  void OnStepEnd(const StepResult& record);  // collective
  // There is a checkpoint, from before.
  void Found(std::int64_t step);
  // The evaluation that was asked for is done, or needless.
  void Evaluated();
  // What was asked for is done, without another checkpoint.
  void AckCheckpoint();
  // It ends early, since all ranks were asked to.
  void Stop();

  // Collective: rests until no rank is asked to pause any more, or one to stop, and calls `save`
  // where a checkpoint is asked for meanwhile.  Returns whether to stop.  All ranks meet after each
  // TrainerDeps::rest, so that signals and files are obeyed in a pause too, and none seems to hang.
  bool Rest(std::int64_t step, const std::function<void()>& save);

 private:
  void Tell(RunEvent event);

  const TrainerDeps& deps_;
  LogDispatcher& log_;
  RunControl* const control_;  // of rank 0, where there is one
  Schedule schedule_;
  StragglerReporter stragglers_;
  SlowLinkReporter links_;
};

}  // namespace trainer
