// SPDX-License-Identifier: Apache-2.0
//
// What a training says of itself when it is asked, as a value and as one line of JSON.  Pure.

#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/control/rank_loads.h"
#include "trainer/control/run_state.h"
#include "trainer/telemetry/meters/step_timer.h"

namespace trainer {

// What does not change while it runs.
struct RunIdentity {
  int ranks = 1;
  std::string host;  // of rank 0
  std::int64_t pid = 0;
  std::string version;  // of ddltraind
  std::string job;      // Slurm's number of it, or ""
};

struct RunStatus {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  RunState state = RunState::kStarting;
  std::int64_t step = 0;                  // updates done, those before a resume included
  std::int64_t steps = 0;                 // of the whole training
  std::int64_t epoch = 0;                 // the one under way, from 0
  std::int64_t epochs = 0;                // 0: the training is counted in steps
  double loss = kUnknown;                 // of the last step, L2 loss included
  double images_per_second = kUnknown;    // of all ranks, over the last steps
  double eta_seconds = kUnknown;          // of training, if it is not paused any more
  std::int64_t checkpoint_step = -1;      // of the newest checkpoint; -1: there is none
  StepTimes times;                        // of rank 0, mean over the last steps; 0: not known
  double median_busy_seconds = kUnknown;  // of all ranks: how long one is busy itself in a step
  std::vector<RankLoad> loads;            // by rank; of many the slowest (rank_loads.h)
  std::int64_t display_every = 0;         // steps
  std::vector<ControlCommand> requested;  // what was asked for and is not done yet
  RunIdentity identity;
};

// One line, without its end.  What is not known or no number is null.
std::string FormatStatus(const RunStatus& status);
// Throws Error(EX_DATAERR) for any other text.
RunStatus ParseStatus(std::string_view json);

}  // namespace trainer
