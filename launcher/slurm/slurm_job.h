// SPDX-License-Identifier: Apache-2.0
//
// What Slurm itself says about the job that ddlrun runs in, while it runs, and the order to queue
// it again.

#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/base/environment.h"

namespace launcher {

struct SlurmJob {
  std::string state;  // "RUNNING", "COMPLETING", "CANCELLED", ...
  bool may_requeue = false;
  bool is_batch = false;               // false: of salloc or srun
  std::vector<std::string> nodes;      // without those it has lost
  std::optional<double> seconds_left;  // until its time limit; empty: it has none
};

// From `scontrol --oneliner show job`, a line for each component of a heterogeneous job, the first
// for what they share.  nullopt for any other text.  Pure.
std::optional<SlurmJob> ParseSlurmJob(const std::string& text);

// "12" or, of a task of an array, "12_3"; "" outside Slurm.  Pure.
std::string SlurmJobId(const Environment& environment);

// The steps that together run the ranks: of a heterogeneous job one for each of `components`, all
// with the number of `step` ("12.3", as a rank reports it), which alone names the first.  Pure.
std::vector<std::string> StepsOfComponents(const std::string& step, const std::set<int>& components,
                                           const Environment& environment);

// The commands that send a signal to all ranks of `steps`, and that print a line for each of them
// that is there; empty where Slurm's own is not in PATH.
std::vector<std::string> SignalStepCommand(const std::vector<std::string>& steps, int signal,
                                           const Environment& environment);
std::vector<std::string> ListStepsCommand(const std::vector<std::string>& steps,
                                          const Environment& environment);

// nullopt when Slurm does not answer.
std::optional<SlurmJob> AskSlurmForJob(const Environment& environment);

// `scontrol requeue`.  Returns "", or why Slurm refused.
std::string RequeueSlurmJob(const Environment& environment);

}  // namespace launcher
