// SPDX-License-Identifier: Apache-2.0
//
// Asks Slurm one question by scontrol, or gives it one order.

#pragma once

#include <string>
#include <vector>

#include "launcher/base/environment.h"

namespace launcher {

struct ScontrolAnswer {
  bool is_ok = false;
  bool was_killed = false;  // a signal has ended scontrol, as when Slurm ends the job of ddlrun
  std::string text;         // all that scontrol printed, or why there is no answer, in one line
};

// Runs `scontrol` with `arguments` and waits for its end, for 30 s at most: slurmctld may take that
// long where it is just being restarted.
ScontrolAnswer RunScontrol(const std::vector<std::string>& arguments,
                           const Environment& environment);

}  // namespace launcher
