// SPDX-License-Identifier: Apache-2.0
//
// What ddlrun --check=full and --check-only do: a node check of all nodes before the ranks start.

#pragma once

#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/cli/options.h"
#include "launcher/cli/settings.h"
#include "launcher/health/node_info.h"
#include "launcher/health/verdict.h"
#include "launcher/pipeline/launch.h"
#include "launcher/pipeline/planned_job.h"
#include "launcher/supervise/cleanup_process.h"
#include "launcher/system/run_directory.h"
#include "launcher/system/signal_relay.h"

namespace launcher {

// What the check needs to know, which is mostly what MakeCommands takes.
struct HealthCheck {
  const Options& options;
  const Settings& settings;
  const PlannedJob& planned;
  const Launch& launch;
  const Environment& environment;
  const std::string& program_directory;
  const RunDirectory& run_directory;
  SignalRelay& signals;
  CleanupProcess& cleanup_process;
  bool details = false;  // the facts have them, too
};

struct HealthCheckResult {
  std::vector<NodeInfo> info;  // of each node of the plan; `host` is "" for one without answer
  std::vector<Verdict> verdicts;
  std::vector<std::string> lines;  // the last ones that the launcher printed and that are no facts
  std::string commands;            // what was started: "+ ..."
  std::string table;               // of the verdicts
  std::string messages;            // lines to say after it
  std::string rejection;           // a line that says why no rank is started; "" when they may be
  std::vector<BadNode> bad_nodes;  // without which the check would pass; none when it has passed
  int exit_code = 0;  // EX_CONFIG when a check failed; 128 + n when signal n stopped ddlrun
};

// A line that says what the check of the nodes of `plan` will do, and how long it may take; "" for
// a single node.
std::string CheckAnnouncement(const LaunchPlan& plan);

// Starts the check on every node, by the launcher that will start the ranks, and judges what they
// find. Takes no longer than CheckAnnouncement says.  The file that it makes in the working
// directory is gone afterwards, even if ddlrun is killed.  Throws LaunchError as MakeCommands and
// RunCheckStep do.
HealthCheckResult CheckHealth(const HealthCheck& check);

// One rank on each node of `plan`, bound to nothing.  Pure.
LaunchPlan OneRankPerNode(const LaunchPlan& plan);

}  // namespace launcher
