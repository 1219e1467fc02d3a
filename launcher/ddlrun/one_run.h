// SPDX-License-Identifier: Apache-2.0
//
// Runs the ranks of a job once: from the run directory to the text at the end.

#pragma once

#include <sysexits.h>

#include <string>

#include "launcher/base/environment.h"
#include "launcher/cli/options.h"
#include "launcher/cli/settings.h"
#include "launcher/features/run_recorder.h"
#include "launcher/pipeline/launch.h"
#include "launcher/pipeline/planned_job.h"
#include "launcher/restart/restarts.h"
#include "launcher/system/signal_relay.h"

namespace launcher {

// One call of ddlrun: what all runs of its ranks share.
struct Invocation {
  const Options& options;
  const Settings& settings;
  const Environment& environment;
  std::string program_directory;    // of ddlrun itself
  RunRecorder* recorder = nullptr;  // null with --check-only
};

struct RunResult {
  int exit_code = EX_OK;
  bool start_again = false;
  bool step_is_left = false;  // Slurm could not end the step, which still holds its resources
  int pause = 0;              // seconds, before the next start
};

// Starts the ranks of `planned`, with a run directory of their own, and waits for them.  With
// --check=full it checks all nodes before; with --check-only it does nothing else.  Throws
// LaunchError.
RunResult RunOnce(const Invocation& invocation, const PlannedJob& planned, const Launch& launch,
                  Restarts& restarts, SignalRelay& signals);

}  // namespace launcher
