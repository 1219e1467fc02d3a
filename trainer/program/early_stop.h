// SPDX-License-Identifier: Apache-2.0
//
// Runs that end early, because a stop was requested by a signal, by ddlctl or the end of the job's
// time, with a checkpoint and the code that says so; and hung ones, by the watchdog.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "launcher/protocol/rank_environment.h"
#include "trainer/comm/communicator.h"
#include "trainer/control/run_control.h"
#include "trainer/options/options.h"
#include "trainer/program/launch_environment.h"
#include "trainer/telemetry/text/clock.h"
#include "trainer/telemetry/text/log.h"
#include "trainer/train/monitor/hang_watchdog.h"

namespace trainer {

// Signals.  One process has one set of them.

// From here on SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU (a limit of CPU time, before that at which the
// kernel kills), SIGHUP (a lost terminal; ignored under nohup) and the first SIGINT only ask for a
// checkpoint and an orderly end; a second SIGINT ends at once.  So does launcher::kPeerFailedSignal
// (EndProcessSoon): the all-reduce that this rank waits in does not complete.  A full disk and a
// closed pipe become errors to report, not deaths.
void CatchStopSignals();

// The last signal that has asked to stop; 0: none has.
int StopSignal();

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

// Null if nobody is to look for hung ranks.  On a hang it prints the report, behind `line`, and
// ends the process with EX_SOFTWARE; the starter ends the other ranks.
std::unique_ptr<HangWatchdog> StartHangWatchdog(const Options& options,
                                                const launcher::RankInfo& rank, RedrawnLine& line);

}  // namespace trainer
