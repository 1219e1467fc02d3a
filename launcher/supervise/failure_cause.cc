// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/failure_cause.h"

#include <sysexits.h>

#include <cmath>
#include <csignal>

namespace launcher {
namespace {

// By a signal that nobody sends to the peers of a failed rank: SIGABRT is that of a library which
// has lost its peer (the watchdog of torch.distributed), SIGPIPE that of a write to it.  SIGKILL
// may be that of the whole step, which takes Slurm longer than the kernel takes for one rank (6 to
// 14 ms were seen); Slurm 24.11 may end the shim of a killed rank before it has said that it lives
// on.
bool IsCrash(const RankExit& end, double seconds_between, const std::set<int>& killed_alone) {
  constexpr double kForStep = 0.05;
  if (end.signal == SIGKILL) return seconds_between < kForStep || killed_alone.contains(end.rank);
  return end.signal == SIGSEGV || end.signal == SIGBUS || end.signal == SIGFPE ||
         end.signal == SIGILL;
}

}  // namespace

bool IsEarlierCause(const RankExit& end, const RankExit& known, double later,
                    const std::set<int>& killed_alone) {
  constexpr double kMeanwhile = 1;  // seconds
  const double between = std::abs(later);
  if (between >= kMeanwhile || (end.exit_code == EX_TEMPFAIL) != (known.exit_code == EX_TEMPFAIL)) {
    return false;
  }
  const bool is_crash = IsCrash(end, between, killed_alone);
  return is_crash == IsCrash(known, between, killed_alone) ? later < 0 : is_crash;
}

}  // namespace launcher
