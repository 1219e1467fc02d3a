// SPDX-License-Identifier: Apache-2.0
//
// The side of ddlrun in the check of all nodes: starts ddlrun-node-check on every node, reads what
// it prints, and ends it when its time is up.

#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/health/node_info.h"
#include "launcher/launch/launcher.h"
#include "launcher/supervise/cleanup_process.h"
#include "launcher/system/signal_relay.h"

namespace launcher {

struct CheckStep {
  std::vector<ChildCommand> commands;
  int nodes = 1;
  std::chrono::seconds limit{60};  // after which the step is ended
  std::function<void()> on_stop;   // called once when the step is ended
};

struct CheckStepResult {
  std::vector<NodeInfo> info;      // of each node; `host` is "" when it did not report
  std::string end;                 // how the launcher ended: "the launcher ended with exit code 1"
  std::vector<std::string> lines;  // the last lines that were printed and are not facts
  std::optional<int> interrupted;  // the signal that asked ddlrun to stop
};

// Blocks until no child is left.  SIGTERM, SIGINT and SIGHUP end the step.  Throws LaunchError when
// a child cannot be started, or prints facts that this version of ddlrun-node-check does not write.
CheckStepResult RunCheckStep(const CheckStep& step, SignalRelay& signals,
                             CleanupProcess& cleanup_process);

}  // namespace launcher
