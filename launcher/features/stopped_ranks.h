// SPDX-License-Identifier: Apache-2.0
//
// Ranks of the local launcher that are stopped (Ctrl-Z in a terminal of theirs, a debugger, kill
// -STOP).  Those of srun and mpirun have shims that look after them.

#pragma once

#include "launcher/features/feature.h"
#include "launcher/shim/stopped_rank_monitor.h"

namespace launcher {

extern const Feature kStoppedRanks;

// Looks, once a second, for ranks that are stopped, and says of each that it has been for long,
// unless somebody is attached to it, which it tells the job.
// Once they were told to stop, and have had their grace to go on, what is stopped is killed.
class StoppedRanks : public JobWatcher {
 public:
  explicit StoppedRanks(std::chrono::milliseconds grace) : grace_(grace) {}

  void OnLaunch(WatchedJob& job) override { look_at_ = job.Now(); }
  void Poll(WatchedJob& job) override;
  Deadline deadline() const override { return look_at_; }

 private:
  const std::chrono::milliseconds grace_;
  Deadline look_at_;
  std::map<int, StoppedRankMonitor> monitors_;  // of each rank
};

}  // namespace launcher
