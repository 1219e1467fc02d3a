// SPDX-License-Identifier: Apache-2.0
//
// ddlrun --tune: measures what of the settings is better on the nodes of this job, and writes a
// site file.

#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/base/error.h"
#include "launcher/cli/options.h"
#include "launcher/system/signal_relay.h"
#include "launcher/tune/trials.h"

namespace launcher {

// `arguments` are those of the command line.  Prints what was found, writes the file, and returns
// EX_OK.  Throws LaunchError: EX_USAGE for a command line that asks for something else, too, or a
// file that is there already; EX_CONFIG for fewer than two nodes, and where a node does not answer;
// EX_UNAVAILABLE where ddlbench is missing or nothing can be measured; 128 + n where signal n
// stopped it.
int TuneSite(const std::vector<std::string>& arguments, const Options& options,
             const Environment& environment);

// Runs of ddlrun --tune: ddlrun itself is started for each, so that ranks start just as in the job
// that the figures are for.

// A signal that asks ddlrun to stop came during a run, which has ended.
class StoppedBySignal : public LaunchError {
 public:
  explicit StoppedBySignal(int number)
      : LaunchError(128 + number, "stopped by signal " + std::to_string(number)) {}
};

struct TrialOutput {
  bool is_ok = false;
  std::string text;    // all that it printed
  double seconds = 0;  // from its start to its end
};

class TrialRuns {
 public:
  // `options` are those of the command line, for every run.
  TrialRuns(std::vector<std::string> options, const Environment& environment, SignalRelay& signals);

  // Runs ddlrun with `more` options and `program`, for `limit` at most.  Throws StoppedBySignal,
  // and LaunchError as CommandOutput does.
  TrialOutput Run(const std::vector<std::string>& more, const std::vector<std::string>& program,
                  std::chrono::seconds limit);

  // The last line of what a run that failed has printed.
  static std::string LastLineOf(const TrialOutput& output);

 private:
  const std::vector<std::string> options_;
  const Environment& environment_;
  SignalRelay& signals_;
};

}  // namespace launcher
