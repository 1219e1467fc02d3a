// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/signals_to_ranks.h"

#include <csignal>

#include "launcher/protocol/launchers.h"
#include "launcher/system/signal_relay.h"

namespace launcher {

bool SignalsToRanks::SendBySlurm(int number) {
  return children_.launcher().makes_step && !events_.step().empty() &&
         step_signals_.Send(events_.step(), number);
}

// At SIGTERM, SIGINT and SIGHUP srun would kill the step at once, and it does not pass SIGCONT on.
// It gets SIGCONT all the same: Stop may have stopped it before it had named its step.
void SignalsToRanks::Relay(int number) {
  const bool is_kept_by_srun = IsStopRequest(number) || number == SIGCONT;
  const bool is_sent = is_kept_by_srun && !children_.AllEnded() && SendBySlurm(number);
  if (!is_sent || number == SIGCONT) children_.RelaySignal(number);
}

bool SignalsToRanks::NotifyOfFailure() {
  if (children_.AllEnded()) return false;
  const LauncherTraits& launcher = children_.launcher();
  if (launcher.makes_step) return SendBySlurm(kPeerFailedSignal);
  children_.Signal(launcher.failure_signal != 0 ? launcher.failure_signal : kPeerFailedSignal);
  return true;
}

void SignalsToRanks::Stop() {
  is_stopping_ = true;
  has_lost_stop_ = false;
  if (SendBySlurm(SIGSTOP)) return;
  const int instead = children_.launcher().suspend_signal;
  children_.Signal(instead != 0 ? instead : SIGSTOP);
}

bool SignalsToRanks::TakeStopped() {
  if (!is_stopping_ || (!has_lost_stop_ && !step_signals_.HaveArrived())) return false;
  is_stopping_ = false;
  return true;
}

bool SignalsToRanks::KillStep() {
  has_killed_step_ = SendBySlurm(SIGKILL);
  return has_killed_step_;
}

bool SignalsToRanks::TakeLostOrder() {
  bool is_lost = false;
  while (const std::optional<int> number = step_signals_.TakeLost()) {
    is_lost = is_lost || IsStopRequest(*number);
    has_lost_stop_ = has_lost_stop_ || *number == SIGSTOP;
  }
  return is_lost;
}

bool SignalsToRanks::WaitUntilKilled(std::chrono::milliseconds limit) const {
  return WaitUntilStepIsGone(tools_, events_.step(), limit);
}

}  // namespace launcher
