// SPDX-License-Identifier: Apache-2.0
//
// ddlbench step: how long a training step takes, and which of its phases takes how much of it.

#pragma once

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/ddlbench/runs/command_runner.h"
#include "bench/run_log/log_entry.h"

namespace bench {

struct StepOptions {
  std::string arch = "resnet50";
  int devices = 1;               // ranks
  std::int64_t batch_size = 64;  // of a rank in a step
  std::string precision = "fp32";
  int steps = 50;
  int warmup_steps = 20;
  std::string data_dir;              // "": synthetic
  std::vector<std::string> ddlrun;   // options for it
  std::vector<std::string> trainer;  // further options of ddltraind
};

// Throws trainer::Error(EX_USAGE) naming the option that is wrong.
void CheckStepOptions(const StepOptions& options);

// ddlrun and ddltraind.
std::vector<std::string> StepCommand(const StepOptions& options, const Programs& programs,
                                     const std::filesystem::path& results_dir);

// Phase and median in ms, in their order, out of ddltraind's line "median of 50 steps: 93.1
// images/s, 10.2 ms (input wait 0.0, forward 3.1, ...)"; none of another line.
using Phases = std::vector<std::pair<std::string, double>>;
Phases PhasesOf(std::string_view line);

// Tables of the steps that count, of all ranks' images, and of the phases.  REQUIRES: a step.
std::string FormatStep(std::span<const RunStep> counted, std::int64_t global_batch,
                       const Phases& phases);

// Runs it in a directory that is removed, and prints the tables to `out`.  Returns 0, the exit code
// of the run that failed (whose output goes to `messages`), or 128 + n when signal n ended it.
// Throws trainer::Error.
int RunStepBench(const StepOptions& options, const Programs& programs, std::ostream& out,
                 std::ostream& messages);

}  // namespace bench
