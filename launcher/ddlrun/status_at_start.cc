// SPDX-License-Identifier: Apache-2.0

#include "launcher/ddlrun/status_at_start.h"

#include <unistd.h>

#include <array>
#include <chrono>

#include "launcher/slurm/slurm_job.h"
#include "support/quoting.h"

namespace launcher {

JobStatus StatusAtStart(const Invocation& invocation, const PlannedJob& planned,
                        const Launch& launch) {
  const auto now = std::chrono::system_clock::now();
  JobStatus status;
  status.job = SlurmJobNumber(invocation.environment);
  std::array<char, 256> host = {};
  gethostname(host.data(), host.size() - 1);
  status.host = host.data();
  status.pid = static_cast<int>(getpid());
  status.launcher = launch.choice.name;
  status.restarts = planned.restart_count;
  status.program = support::QuoteCommand(invocation.options.program);
  status.started = std::chrono::duration<double>(now.time_since_epoch()).count();
  const TimeLimitWatcherOptions& end = invocation.time_limit;
  if (end.end) {
    const std::chrono::duration<double> left = *end.end - TimeLimitWatcher::Clock::now();
    status.ends = status.started + left.count();
  } else if (invocation.environment.contains("SLURM_JOB_END_TIME")) {
    const auto left = SecondsToTimeLimit(invocation.environment, now);
    if (left && *left > 0) status.ends = status.started + *left;
  }
  for (const RankPlacement& rank : planned.plan.ranks) {
    status.ranks.emplace_back().host = planned.plan.nodes[static_cast<std::size_t>(rank.node)].host;
  }
  return status;
}

}  // namespace launcher
