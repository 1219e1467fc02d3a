// SPDX-License-Identifier: Apache-2.0
//
// Runs that end before all that they were asked for is done, with a checkpoint and the code that
// says so.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/comm/communicator.h"
#include "trainer/control/run_control.h"
#include "trainer/control/run_requests.h"
#include "trainer/options/options.h"
#include "trainer/program/launch_environment.h"
#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/log.h"

namespace trainer {

// For rank 0, once options.results_dir is there: its files `stop` and `checkpoint`, and the end of
// the job's time by SLURM_JOB_END_TIME (Slurm 22.05 and later: seconds since 1970) and
// --stop_margin; and `control` and `lock`, which may be null and outlive it.  A time that is over
// already, or no number, is said and not watched.  Null in modes that keep no weights.
std::unique_ptr<RunRequests> MakeRunRequests(const Options& options, const EnvironmentLookup& get,
                                             const WallClock& clock, const Logger& log,
                                             RunControl* control = nullptr,
                                             RunLock* lock = nullptr);

// What has asked this rank to stop.
struct StopCause {
  int signal_number = 0;  // 0: none
  std::string request;    // RunRequests::why
};

// Says what became of a run that was stopped after `step` updates; the code to leave with.  All
// ranks call it: the signal may have been another rank's.
int EndStopped(const Options& options, std::int64_t step, const StopCause& cause,
               Communicator& communicator, const Logger& log);

}  // namespace trainer
