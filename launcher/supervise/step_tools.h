// SPDX-License-Identifier: Apache-2.0
//
// What Slurm is asked to do with the step that the ranks are: signals by scancel, and whether it is
// still there.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/environment.h"
#include "launcher/supervise/command_output.h"

namespace launcher {

// Steps are named as ranks report them, "123.4".  A command is argv with a path; empty: there is
// none.
struct StepTools {
  using Command = std::vector<std::string>;
  std::function<Command(const std::string& step, int signal)> signal;  // sends it to every rank
  std::function<Command(const std::string& step)> list;  // prints something while the step is there
  Environment environment;
};

// scancel answers within a second, and takes longer where slurmctld is busy or not there.
inline constexpr std::chrono::milliseconds kPatienceWithScancel{10000};

// Signals on their way.
class StepSignals {
 public:
  using Clock = std::chrono::steady_clock;

  explicit StepSignals(const StepTools& tools) : tools_(tools) {}

  // Starts the command and returns at once.  False when there is none.
  bool Send(const std::string& step, int number);
  // Whether the last one's command has ended; true when there was none.  SIGCHLD comes when it
  // does.
  bool HasArrived();
  // The last one, once, if its command has failed or has not ended within the patience.
  std::optional<int> TakeLost();
  // When TakeLost is to be asked although no child has ended; nullopt: never.
  std::optional<Clock::time_point> deadline() const { return deadline_; }

 private:
  const StepTools& tools_;
  std::vector<std::unique_ptr<CommandOutput>> commands_;  // what still runs dies with this object
  int number_ = 0;
  std::optional<Clock::time_point> deadline_;  // of the last one, until it has arrived
};

// Asks until the step is gone or `limit` is over.  True as well where nobody can be asked.
bool WaitUntilStepIsGone(const StepTools& tools, const std::string& step,
                         std::chrono::milliseconds limit);

}  // namespace launcher
