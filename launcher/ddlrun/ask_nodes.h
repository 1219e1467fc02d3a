// SPDX-License-Identifier: Apache-2.0
//
// Plans the job and asks each of its nodes what it is, by the check of --check-only, with details.

#pragma once

#include "launcher/base/environment.h"
#include "launcher/cli/options.h"
#include "launcher/cli/settings.h"
#include "launcher/health/health_check.h"
#include "launcher/pipeline/launch.h"
#include "launcher/pipeline/planned_job.h"

namespace launcher {

struct AskedNodes {
  PlannedJob planned;
  Launch launch;
  HealthReport report;  // its exit code is above 128 where a signal has stopped ddlrun
};

// The two steps apart, so that a job is known whose nodes cannot be asked.  From PlanToAsk on
// `asked` has the plan and the launcher, from AskNodes on the report.  Both throw LaunchError as
// PlanJob, ChooseLaunch and CheckHealth do.
void PlanToAsk(const Options& options, const Settings& settings, const Environment& environment,
               AskedNodes& asked);
void AskNodes(const Options& options, const Settings& settings, const Environment& environment,
              AskedNodes& asked);

}  // namespace launcher
