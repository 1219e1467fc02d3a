// SPDX-License-Identifier: Apache-2.0
//
// Asks Slurm one question by scontrol, or gives it one order.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "launcher/base/environment.h"
#include "launcher/system/child_process.h"

namespace launcher {

// slurmctld may take as long where it is just being restarted.
inline constexpr std::chrono::seconds kTimeoutWithScontrol{30};

struct ScontrolAnswer {
  bool is_ok = false;
  bool was_killed = false;  // a signal has ended scontrol, as when Slurm ends the job of ddlrun
  std::string text;         // all that scontrol printed, or why there is no answer, in one line
};

// Runs `scontrol` with `arguments` and waits for its end, for kTimeoutWithScontrol at most.
ScontrolAnswer RunScontrol(const std::vector<std::string>& arguments,
                           const Environment& environment);

// The same for a scontrol that was started before; null: there is none in PATH.
ScontrolAnswer AnswerOfScontrol(CommandOutput* command);

}  // namespace launcher
