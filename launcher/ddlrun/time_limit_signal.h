// SPDX-License-Identifier: Apache-2.0
//
// --stop-before: when the ranks of this job are to be told that its time ends.

#pragma once

#include "launcher/base/environment.h"
#include "launcher/cli/settings.h"
#include "launcher/supervise/time_limits.h"

namespace launcher {

// Without --stop-before they are told nothing.  Asks scontrol where SLURM_JOB_END_TIME is not set,
// or too near, and waits for its answer.  Throws LaunchError(EX_CONFIG) where the end of the job is
// not known, or too near.
TimeLimitWatcherOptions StopInTime(const Settings& settings, const Environment& environment);

}  // namespace launcher
