// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/stopped_ranks.h"

#include "launcher/protocol/attachment.h"
#include "launcher/protocol/rank_event.h"
#include "launcher/system/line_reader.h"

namespace launcher {
namespace {

std::unique_ptr<JobWatcher> WatchStoppedRanks(const JobRun& run) {
  if (!run.launch.choice.traits().is_direct) return nullptr;
  return std::make_unique<StoppedRanks>(run.settings.grace);
}

}  // namespace

const Feature kStoppedRanks = {nullptr, nullptr, WatchStoppedRanks};

void StoppedRanks::Poll(WatchedJob& job) {
  const auto now = job.Now();
  if (now < *look_at_) return;
  look_at_ = now + std::chrono::seconds(1);
  const double seconds = std::chrono::duration<double>(now.time_since_epoch()).count();
  const double grace = std::chrono::duration<double>(grace_).count();
  for (const auto& [rank, pid] : job.Processes()) {
    const bool is_attached = IsAttached(pid);
    job.SetAttached(rank, is_attached);
    // A debugger stops it.
    const pid_t stopped = is_attached && !job.IsStopRequested() ? 0 : FindStopped(pid);
    const auto step = monitors_[rank].Look(stopped, seconds, job.IsStopRequested(), grace);
    if (step == StoppedRankMonitor::Step::kKill) kill(stopped, SIGKILL);
    if (step != StoppedRankMonitor::Step::kPrint) continue;
    const std::string& host = job.hosts().at(static_cast<std::size_t>(rank));
    const RankEvent report = EmitRankStopped("", rank, host.c_str(), stopped);
    const std::string_view text = report.text;
    job.Say("ddlrun" + std::string(WithoutEnd(text.substr(text.find(": ")))));
  }
}

}  // namespace launcher
