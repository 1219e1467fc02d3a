// SPDX-License-Identifier: Apache-2.0
//
// What ddlrun tells its user about a run of the ranks, before it and at its end.  Each text has
// whole lines.  Pure.

#pragma once

#include <array>
#include <ctime>
#include <string>

#include "launcher/cli/options.h"
#include "launcher/cli/settings.h"
#include "launcher/cost/run_cost.h"
#include "launcher/pipeline/launch.h"
#include "launcher/pipeline/planned_job.h"
#include "launcher/restart/restart_policy.h"
#include "launcher/supervise/supervisor.h"

namespace launcher {

// Now: "2026-11-27 09:30:00 UTC".
inline std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  std::array<char, 64> text = {};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text.data();
}

// The warnings and, where ddlrun has chosen it, the launcher that starts the ranks.  `is_root`: the
// user is root.
std::string Announcement(const Options& options, const PlannedJob& planned,
                         const Settings& settings, const Launch& launch, bool is_root);

// Says where the log is, which stays in `run_directory`, in the words of IBM's ddlrun.
std::string WhereTheLogIs(const std::string& run_directory);

// Whether the end of a run says what it has cost: after a restart, after a failure that comes a
// minute or more after the start, and where more is to be said.
bool ShowsCost(const RunCost& cost, int exit_code, bool is_verbose);

// How the ranks ended, and what follows.  The cause of a failure is the last line, unless the ranks
// are started again.
std::string EndText(const JobResult& result, const Decision& decision);

}  // namespace launcher
