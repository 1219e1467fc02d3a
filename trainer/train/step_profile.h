// SPDX-License-Identifier: Apache-2.0
//
// The ops of some training steps of this rank, each beside what the machine allows
// (telemetry/op_profile.h): in two files, and as lines for standard output.  What cannot be written
// is told to the log, and the training goes on.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/backend/op_recorder.h"
#include "trainer/core/machine_peaks.h"
#include "trainer/model/network.h"
#include "trainer/telemetry/log.h"
#include "trainer/train/config.h"

namespace trainer {

// What main provides for a profile.
struct ProfileParts {
  OpRecorder* recorder = nullptr;  // of the back end of the run (backend/measured_backend.h)
  std::string backend;             // its description
  MachinePeaks peaks;
  bool are_peaks_measured = false;  // else given
};

class StepProfile {
 public:
  // All outlive it.  The ops get the names of the network's layers.  `parts` may be null: then
  // nothing is done.
  StepProfile(const TrainConfig& config, const ProfileParts* parts, const Network& network,
              Logger log);

  // This launch makes the steps from `first` up to, but not, `end`, counted from 0: warns where it
  // has none that is to be profiled.
  void CheckSteps(std::int64_t first, std::int64_t end);
  void Before(std::int64_t step);
  // The step took `seconds`.
  void After(std::int64_t step, double seconds);
  // What was computed since the last step is of none.
  void LeaveOut();
  // The training has gone back to a checkpoint, and its next step may be any.  What is profiled has
  // to be steps in a row: it starts anew where steps that are to be profiled are made again.
  void RolledBack();
  // No step follows in this launch.  Shows the steps that were profiled, even where
  // the training went back behind them and ended before it made them again.
  void End();

  // For standard output; none unless steps were profiled.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  void Show();
  void Write(const std::string& name, const std::string& text);

  const TrainConfig& config_;
  const ProfileParts* const parts_;
  const Logger log_;
  std::int64_t first_ = 0;  // that was profiled, from 1
  std::int64_t steps_ = 0;
  double seconds_ = 0;  // of all of them
  bool is_done_;
  std::vector<std::string> lines_;
};

}  // namespace trainer
