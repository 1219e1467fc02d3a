// SPDX-License-Identifier: Apache-2.0

#include "launcher/features/start_limit.h"

#include "launcher/base/error.h"

namespace launcher {
namespace {

std::unique_ptr<JobWatcher> WatchStartLimit(const JobRun& run) {
  const std::chrono::seconds limit = run.settings.start;
  return limit.count() == 0 ? nullptr : std::make_unique<StartLimit>(limit);
}

}  // namespace

const Feature kStartLimit = {nullptr, nullptr, WatchStartLimit};

std::vector<std::string> NodesNotStarted(const std::vector<std::string>& hosts,
                                         const std::set<int>& started) {
  std::vector<std::string> nodes;
  std::set<std::string> known;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (started.contains(static_cast<int>(rank))) continue;
    if (known.insert(hosts[rank]).second) nodes.push_back(hosts[rank]);
  }
  return nodes;
}

void StartLimit::OnLaunch(WatchedJob& job) {
  if (!job.launcher().is_direct && !job.hosts().empty()) deadline_ = job.Now() + limit_;
}

void StartLimit::OnEvent(WatchedJob& job, Event event) {
  const bool have_all_started = job.started().size() == job.hosts().size();
  if (have_all_started || event == Event::kWaiting) {  // no telling how long srun waits
    deadline_.reset();
  } else if (event == Event::kGranted) {
    deadline_ = job.Now() + limit_;
  }
}

void StartLimit::OnContinue(WatchedJob& job) {
  if (deadline_) deadline_ = job.Now() + limit_;
}

void StartLimit::Poll(WatchedJob& job) {
  if (!job.IsRunning()) return deadline_.reset();
  if (!deadline_ || job.Now() < *deadline_) return;
  if (job.AreRanksHeld()) return OnContinue(job);  // they cannot go on
  const bool is_unresponsive = job.launcher().has_daemons && job.started().empty();
  if (is_unresponsive && job.MayHaveStartedAny()) return deadline_.reset();
  not_started_ = NodesNotStarted(job.hosts(), job.started());
  job.Kill({.kind = OwnEnd::Kind::kStartHung,
            .exit_code = EX_UNAVAILABLE,
            .text = "its start hung: on " + SomeOf(not_started_) +
                    " not all programs ran when the time for that was over (start_seconds of the "
                    "site file)"});
}

void StartLimit::OnEnd(const WatchedJob& job, JobResult* result) {
  if (job.launcher().makes_step && !not_started_.empty()) result->silent_nodes = not_started_;
}

}  // namespace launcher
