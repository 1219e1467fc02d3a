// SPDX-License-Identifier: Apache-2.0

#include "launcher/supervise/heartbeat_monitor.h"

#include <algorithm>

namespace launcher {

void HeartbeatMonitor::Pass(double seconds) {
  for (File& file : files_) file.silence += seconds;
}

void HeartbeatMonitor::Look(int index, std::optional<std::int64_t> time) {
  File& file = files_.at(static_cast<std::size_t>(index));
  // What an earlier run has left is no beat.
  const bool has_changed = file.is_known && time && time != file.time;
  file.is_known = true;
  if (time) file.time = time;
  if (!has_changed) return;
  file.has_changed = true;
  file.silence = 0;
}

void HeartbeatMonitor::Forget(int index) {
  files_.at(static_cast<std::size_t>(index)).is_forgotten = true;
}

std::vector<int> HeartbeatMonitor::Late() const {
  std::vector<int> late;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const File& file = files_[i];
    if (!file.is_forgotten && file.silence >= BoundOf(file)) late.push_back(static_cast<int>(i));
  }
  std::stable_sort(late.begin(), late.end(), [this](int a, int b) {
    return files_[static_cast<std::size_t>(a)].silence >
           files_[static_cast<std::size_t>(b)].silence;
  });
  return late;
}

}  // namespace launcher
