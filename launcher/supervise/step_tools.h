// SPDX-License-Identifier: Apache-2.0
//
// What Slurm is asked to do with the step of srun that the ranks are in: to send it signals, and to
// say whether it still exists.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/system/child_process.h"

namespace launcher {

// The commands for that.  A step is named as ranks report it, "123.4".  A command is an argv whose
// first word is a path; it is empty where there is no such command.
struct StepTools {
  using Command = std::vector<std::string>;
  std::function<Command(const std::string& step, int signal)> signal;  // sends it to every rank
  std::function<Command(const std::string& step)> list;  // prints something while the step exists
  Environment environment;
};

// How long scancel may take.  It answers within a second, unless slurmctld is busy or down.
inline constexpr std::chrono::milliseconds kTimeoutWithScancel{10000};

// Sends signals to the step, each by a command of its own, so that none waits for another.
class StepSignals {
 public:
  using Clock = std::chrono::steady_clock;

  explicit StepSignals(const StepTools& tools,
                       std::chrono::milliseconds timeout = kTimeoutWithScancel)
      : tools_(tools), timeout_(timeout) {}

  // Starts the command that sends the signal, and returns at once.  False when there is no command,
  // or it cannot be started.
  bool Send(const std::string& step, int number);
  // Whether all commands have ended.  When one ends, SIGCHLD comes.
  bool HaveArrived();
  // A signal whose command has failed or has taken longer than the timeout; nullopt when there is
  // no other one.  Each is returned only once.
  std::optional<int> TakeLost();
  // When TakeLost is to be asked although no child has ended; nullopt: never.
  std::optional<Clock::time_point> deadline() const;

 private:
  struct Sent {
    int number;
    std::unique_ptr<CommandOutput> command;
    std::optional<Clock::time_point> deadline;  // empty once the signal is known to be lost
  };

  const StepTools& tools_;
  const std::chrono::milliseconds timeout_;
  std::vector<Sent> sent_;  // each command that still runs is killed at the end of this object
};

// Asks again and again whether the step still exists, until `limit` is over.  True when it is gone,
// and also where there is no command to ask by.
bool WaitUntilStepIsGone(const StepTools& tools, const std::string& step,
                         std::chrono::milliseconds limit);

}  // namespace launcher
