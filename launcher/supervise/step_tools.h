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

#include "launcher/base/environment.h"
#include "launcher/system/command_output.h"

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

// Signals on their way: each by a command of its own, so that none waits for another.
class StepSignals {
 public:
  using Clock = std::chrono::steady_clock;

  explicit StepSignals(const StepTools& tools,
                       std::chrono::milliseconds patience = kPatienceWithScancel)
      : tools_(tools), patience_(patience) {}

  // Starts the command and returns at once.  False when there is none, or it cannot be started.
  bool Send(const std::string& step, int number);
  // Whether all commands have ended.  SIGCHLD comes when one does.
  bool HaveArrived();
  // A signal whose command has failed, or has not ended within the patience; each is told of once.
  // nullopt when there is none (any more).
  std::optional<int> TakeLost();
  // When TakeLost is to be asked although no child has ended; nullopt: never.
  std::optional<Clock::time_point> deadline() const;

 private:
  struct Sent {
    int number;
    std::unique_ptr<CommandOutput> command;
    std::optional<Clock::time_point> deadline;  // empty once it is known to be lost
  };

  const StepTools& tools_;
  const std::chrono::milliseconds patience_;
  std::vector<Sent> sent_;  // what still runs dies with this object
};

// Asks until the step is gone or `limit` is over.  True as well where nobody can be asked.
bool WaitUntilStepIsGone(const StepTools& tools, const std::string& step,
                         std::chrono::milliseconds limit);

}  // namespace launcher
