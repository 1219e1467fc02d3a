// SPDX-License-Identifier: Apache-2.0
//
// A feature of ddlrun that is on beside the ranks, such as --heartbeat: its options, its settings,
// its errors, what it does while they run, and what it says then are in one file, and a line of
// features.cc is all that the rest knows of it.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/cli/options.h"
#include "launcher/cli/settings.h"
#include "launcher/pipeline/launch.h"
#include "launcher/pipeline/planned_job.h"
#include "launcher/supervise/job_watcher.h"

namespace launcher {

class RunRecorder;

// One run of the ranks, which is about to begin.
struct JobRun {
  const Options& options;
  const Settings& settings;
  const Environment& environment;
  const PlannedJob& planned;
  const Launch& launch;
  std::string directory;            // the run directory
  std::vector<std::string> hosts;   // of each rank
  RunRecorder* recorder = nullptr;  // of this ddlrun; null where nothing is recorded
};

struct Feature {
  // The rows of its options in --help and the manual page; null: it has none.
  std::vector<OptionSpec> (*options)() = nullptr;
  // Adds its settings, and what --show-config says of them.  Throws LaunchError(EX_USAGE) where its
  // options contradict others.  May be null.
  void (*merge)(const Options& options, Settings* settings) = nullptr;
  // What watches the run; null where nothing has to.  Throws LaunchError where the feature cannot
  // do what was asked for.
  std::unique_ptr<JobWatcher> (*watch)(const JobRun& run) = nullptr;
};

}  // namespace launcher
