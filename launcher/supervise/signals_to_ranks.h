// SPDX-License-Identifier: Apache-2.0
//
// How signals travel to the ranks of a job: through the children, or for a step of srun by Slurm.
// For single-threaded callers.

#pragma once

#include <chrono>
#include <optional>

#include "launcher/supervise/deadlines.h"
#include "launcher/supervise/job_children.h"
#include "launcher/supervise/rank_event_parser.h"
#include "launcher/supervise/step_tools.h"

namespace launcher {

class SignalsToRanks {
 public:
  // `children` and `reports`, which name the step, must outlive this object.
  SignalsToRanks(const StepTools& tools, const JobChildren& children,
                 const RankEventParser& reports)
      : tools_(tools), step_signals_(tools), children_(children), events_(reports) {}

  // To every rank.
  void Relay(int number);
  // Tells every shim and rank that a peer has failed (kPeerFailedSignal), and under mpirun, the
  // second time, that all ranks are gone.  False where that cannot be told.
  bool NotifyOfFailure();
  // Stops every rank: they get SIGSTOP.
  void Stop();
  // Whether all ranks are stopped since Stop was called, or Slurm could not do it.  True once.
  bool TakeStopped();
  // Kills the step of srun.  False where its name is not known, or there is no scancel.
  bool KillStep();
  bool has_killed_step() const { return has_killed_step_; }
  // Whether all that was asked of Slurm is done, or was refused.
  bool HaveArrived() { return step_signals_.HaveArrived(); }
  // Whether an order to stop was lost on its way since this was last asked.
  bool TakeLostOrder();
  // When TakeStopped and TakeLostOrder are to be asked at the latest.
  Deadline deadline() const { return step_signals_.deadline(); }
  // Waits until a step that was killed is gone.  False when it is still there after `limit`.
  bool WaitUntilKilled(std::chrono::milliseconds limit) const;

 private:
  bool SendBySlurm(int number);

  const StepTools& tools_;
  StepSignals step_signals_;
  const JobChildren& children_;
  const RankEventParser& events_;
  bool is_stopping_ = false;
  bool has_lost_stop_ = false;
  bool has_killed_step_ = false;
};

}  // namespace launcher
