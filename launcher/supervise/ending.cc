// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "launcher/base/error.h"
#include "launcher/protocol/launchers.h"
#include "launcher/supervise/job_supervisor.h"

namespace launcher {

void JobSupervisor::EndStepThatIsLeft() {
  const bool is_left = events_.has_left_step() || has_lost_srun_;
  if (!to_ranks_.has_killed_step() && is_left) to_ranks_.KillStep();
  const auto timeout = is_abandoned_ ? std::min(options_.grace, options_.timeout_with_step)
                                     : options_.timeout_with_step;
  if (to_ranks_.has_killed_step() && !to_ranks_.WaitUntilKilled(timeout)) {
    result_.step_is_left = true;
    result_.notes.push_back("step " + events_.step() +
                            " was killed and is still there: Slurm could not end all of its ranks "
                            "yet");
  }
}

// Nothing keeps srun or mpirun once all ranks are gone.
void JobSupervisor::ReleaseLauncher() {
  const bool are_gone = !options_.hosts.empty() && events_.gone().size() >= options_.hosts.size();
  if (!are_gone || has_released_) return;
  has_released_ = true;
  gone_until_ = Clock::now() + options_.launcher_timeout;
  if (launcher().has_daemons && were_notified_of_failure_) to_ranks_.NotifyOfFailure();
}

// A process that is none of the ranks' may hold the output.
void JobSupervisor::AbandonLauncher(Clock::time_point now) {
  if (output_.IsHeld()) {  // who waits for a reader cannot end
    gone_until_ = now + options_.launcher_timeout;
    return;
  }
  gone_until_.reset();
  if (state_ != State::kRunning && state_ != State::kEnding) return;
  result_.notes.push_back("all ranks have ended, but " + std::string(launcher().program) +
                          " has not, and was ended: another process holds its output, or " +
                          (launcher().has_daemons ? "a daemon of it" : "Slurm") +
                          " does not answer");
  is_abandoned_ = true;
  KillJob();
  deadline_ = now + options_.grace;  // there is no rank that would have to be ended before
}

// A watcher ends the job.  Where that hangs, who holds it up is asked first.
void JobSupervisor::EndFor(const OwnEnd& end, bool is_kill) {
  using Kind = OwnEnd::Kind;
  if (!IsRunning()) return;
  const bool is_hang = end.kind == Kind::kHung || end.kind == Kind::kStartHung;
  if (is_hang && !result_.stop_requested) {
    if (hang_query_.IsPending() || hang_query_.Begin(end, is_kill, Clock::now())) return;
  }
  result_.own_end = end;
  is_kill ? KillJob() : EndChildren();
}

void JobSupervisor::AdvanceHangQuery() {
  // Who has asked for a stop does not wait; and the job may have failed meanwhile.
  if (!IsRunning() || result_.stop_requested) return hang_query_.Cancel();
  const std::optional<HangQuery::Postponed> postponed = hang_query_.Take(Clock::now());
  if (!postponed) return;
  result_.own_end = postponed->end;
  postponed->is_kill ? KillJob() : EndChildren();
}

// The children are about to end, and have `limit` for it.
void JobSupervisor::ExpectEnd(std::chrono::milliseconds limit) {
  if (!IsRunning()) return;
  state_ = State::kEnding;
  deadline_ = Clock::now() + limit;
  output_.ExpectEnd();
}

void JobSupervisor::EndChildren() {
  if (!HasRunningRanks()) return;
  if (CanReport() && !launcher().is_direct && !IsBeforeStart()) return EndRanks();
  if (launcher().is_direct) children_.Signal(kPeerFailedSignal);
  children_.Signal(SIGTERM);
  children_.Signal(SIGCONT);  // a rank that is stopped would not see SIGTERM
  ExpectEnd(options_.grace);
}

// Has the shims end their ranks.  srun and mpirun, which end them as well, take longer: up to
// Slurm's KillWait.
void JobSupervisor::EndRanks() {
  if (!IsRunning()) return;
  NotifyOfFailure();
  ExpectEnd(options_.grace + options_.grace_of_launcher);
}

// Where a signal would miss ranks that are still to be started, the last start is awaited.  A
// failed rank's shim, which has got no signal, ends after a while, whereupon mpirun ends all others
// itself.
void JobSupervisor::NotifyOfFailure() {
  awaits_starts_ =
      launcher().signals_reach_started_only && events_.started().size() < options_.hosts.size();
  if (!awaits_starts_) were_notified_of_failure_ = to_ranks_.NotifyOfFailure();
}

void JobSupervisor::Advance() {
  AdvanceHangQuery();
  if (state_ == State::kKilling && to_ranks_.has_killed_step() && !has_arrived_ &&
      to_ranks_.HaveArrived()) {
    has_arrived_ = true;
    deadline_ = Clock::now() + options_.grace;
  }
  // slurmctld refuses where it has cancelled the job itself: then Slurm ends the ranks.
  if (to_ranks_.TakeLostOrder() && !events_.cancelled() && !children_.AllEnded()) {
    // Without slurmctld nothing can end the step, but srun still passes SIGUSR1 on to the ranks.
    children_.Signal(SIGUSR1);
    result_.notes.push_back("slurmctld did not pass the order to stop on: ranks got SIGUSR1");
  }
  if (to_ranks_.TakeStopped()) {
    StopAsTerminalWants();  // until SIGCONT, which the ranks get, too
    for (const auto& watcher : options_.watchers) watcher->OnContinue(*this);
  }
  const Clock::time_point now = Clock::now();
  if (gone_until_ && now >= *gone_until_ && !children_.AllEnded()) AbandonLauncher(now);
  if (HasRunningRanks()) return;
  if (!deadline_ || now < *deadline_) return;
  if (state_ == State::kEnding) return KillJob();
  children_.Signal(SIGKILL);
  state_ = State::kKilled;
  deadline_.reset();
}

// Kills the job.  srun and mpirun are not killed at once, since that would leave the ranks on other
// nodes alive: the step is killed first, or mpirun gets SIGTERM.
void JobSupervisor::KillJob() {
  state_ = State::kKilling;
  output_.ExpectEnd();
  deadline_ = Clock::now();
  if (launcher().is_direct) return;
  const bool has_killed_step = to_ranks_.KillStep();
  *deadline_ += has_killed_step ? kTimeoutWithScancel : kGraceOfOthers;
  if (has_killed_step) return;
  children_.Signal(SIGTERM);
  children_.Signal(SIGCONT);
}

}  // namespace launcher
