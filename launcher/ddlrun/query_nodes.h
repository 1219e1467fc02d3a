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

struct NodeQuery {
  PlannedJob planned;
  Launch launch;
  HealthCheckResult report;  // its exit code is above 128 where a signal has stopped ddlrun
};

// The two steps apart, so that a job is known whose nodes cannot be asked.  From PlanForQuery on
// `requested` has the plan and the launcher, from QueryNodes on the report.  Both throw LaunchError
// as PlanJob, ChooseLaunch and CheckHealth do.
void PlanForQuery(const Options& options, const Settings& settings, const Environment& environment,
                  NodeQuery& requested);
void QueryNodes(const Options& options, const Settings& settings, const Environment& environment,
                NodeQuery& requested);

}  // namespace launcher
