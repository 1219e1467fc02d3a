// SPDX-License-Identifier: Apache-2.0

#include "launcher/shim/stopped_rank_monitor.h"

#include "launcher/shim/leftovers.h"

namespace launcher {
namespace {

struct Search {
  int generations;
  pid_t stopped;
};

bool LookBelow(pid_t pid, void* context) {
  auto* const search = static_cast<Search*>(context);
  const char state = ReadProcessState(pid).state;
  if (state == 'T' || state == 't') {
    search->stopped = pid;
  } else if (search->generations > 0) {
    --search->generations;
    ForEachChild(pid, LookBelow, search);
    ++search->generations;
  }
  return search->stopped == 0;
}

}  // namespace

pid_t FindStopped(pid_t program) {
  Search search = {kMaxGenerations, 0};
  LookBelow(program, &search);
  return search.stopped;
}

StoppedRankMonitor::Step StoppedRankMonitor::Look(pid_t stopped, double now, bool is_stop_requested,
                                                  double grace) {
  if (is_stop_requested && notified_at_ < 0) notified_at_ = now;
  if (stopped == 0) {
    since_ = -1;
    is_reported_ = false;
    return Step::kNothing;
  }
  if (since_ < 0) since_ = now;
  if (is_stop_requested && now - (since_ > notified_at_ ? since_ : notified_at_) >= grace) {
    return Step::kKill;
  }
  if (is_reported_ || now - since_ < kLong) return Step::kNothing;
  is_reported_ = true;
  return Step::kPrint;
}

}  // namespace launcher
